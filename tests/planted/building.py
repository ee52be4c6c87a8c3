"""Compiles the planted programs for the virtual GPU, and runs them bare."""

from __future__ import annotations

import fcntl
import hashlib
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from pathlib import Path

from ffm.vgpu.paths import library_folder
from tests.planted.labels import PROGRAMS, Case

HEADER, WITH_LIBRARY = PROGRAMS / "planted.h", PROGRAMS / "planted_with_library.h"
SHARED = PROGRAMS / "planted.cpp"
PARTS = (HEADER, WITH_LIBRARY, SHARED)
"""What all programs share: the headers are precompiled, and the source is compiled once."""

STANDARD = "-std=c++17"
"""Reading the precompiled header takes most of a program's compile time: 90 ms of the processor with the C++ library,
20 ms without. By the next standard it is half as large again.
"""
NEWER_STANDARD, NEWER_HEADERS = "-std=c++20", {"<barrier>", "<coroutine>", "<latch>", "<semaphore>"}
"""For the few programs that include one of these, which read the header itself."""

LINKER = ("-fuse-ld=gold",) if shutil.which("ld.gold") else ()
"""It takes 33 ms of the processor for a program, and GNU's usual one 121 ms, almost as long as the compiler."""

ROOT = Path(__file__).resolve().parents[2]

INCLUDES = ROOT / "ffm" / "vgpu" / "include"

KEPT = ROOT / "build" / "planted"
"""Where test runs keep what they compiled for the next one: two thirds of a minute of the processor."""

LIKE_DRIVERS = "memory.pinned_offset = 4608\n"
"""As NVIDIA's drivers have it, other data lie on the pages of pinned blocks."""

BRIEF = f"devices = 4\nkernel.slow_fill = 3000\nkernel.slow_add_one = 750\n{LIKE_DRIVERS}"
"""Microseconds: long enough that the GPU is still working when the program comes to its waits. For measuring."""

LONG = "devices = 4\nkernel.slow_fill = 40000\nkernel.slow_add_one = 10000\n"
"""Long enough that a program that does not wait is certainly too early, even on a busy machine. For proving."""

TRACED = "devices = 4\nkernel.slow_fill = 300000\nkernel.slow_add_one = 75000\n"
"""Long enough even while a program's code is translated, which takes a quarter of a second on a busy machine."""

QUICK = f"devices = 4\nkernel.slow_fill = 200\nkernel.slow_add_one = 50\n{LIKE_DRIVERS}"
"""For programs of many turns whose verdicts do not depend on whether the GPU is still working at a wait."""

CONFIGURATION = "VGPU_CONFIGURATION"
"""Environment variable that names the virtual GPU's configuration."""

PROVING = "PLANTED_PROVING"
"""Environment variable that tells a program that its labels are being proved."""

SECONDS = 120.0
"""More than any planted program takes, a second or two on an idle machine, on one with twenty times the work."""


@dataclass(frozen=True, slots=True)
class Ran:
    """A bare run of a planted program."""

    right: bool
    """It ended by itself, and everything was as expected."""
    output: str
    ending: int


class Programs:
    """The compiled programs, each built on first use."""

    def __init__(self, folder: Path, runtime: Sequence[str] = ("-lcudart",), kept: Path | None = None) -> None:
        """Keep executables, and what was built for them in advance, in `folder`; link them with `runtime`.

        Other processes may use `kept` at the same time: then executables are below that, and only configurations in
        `folder`. They are built again if anything changes that they are built from.
        """
        self._runtime = runtime
        folder.mkdir(parents=True, exist_ok=True)
        self._long = folder / "long.vgpu"
        self._long.write_text(LONG)
        self._traced = folder / "traced.vgpu"
        self._traced.write_text(TRACED)
        self._quick = folder / "quick.vgpu"
        self._quick.write_text(QUICK)
        self._flags = [
            "-O1", "-g1", "-Wall", "-Wextra", "-Werror", f"-I{PROGRAMS}", f"-I{INCLUDES}",
            "-isystem", str(_cuda_include()),
        ]  # fmt: skip
        self._folder = folder if kept is None else kept / self._built_from()
        self._folder.mkdir(parents=True, exist_ok=True)
        self._precompiled = False

    def _built_from(self) -> str:
        """Return a name for all that programs are built from, besides their own sources."""
        cuda = _cuda_include()
        digest = hashlib.sha256(repr((self._flags, self._runtime, LINKER, library_folder(), BRIEF)).encode())
        headers = (*PROGRAMS.glob("*.h"), *INCLUDES.rglob("*.h"), *cuda.glob("cuda*.h"))
        for file in (Path(__file__), SHARED, *sorted(headers)):
            digest.update(file.read_bytes())
        return digest.hexdigest()[:16]

    def very_slow_gpu(self) -> AbstractContextManager[None]:
        """Make programs that this process starts use a GPU that is slower than their translation by the trace watch."""
        return _configured(self._traced)

    def quick_gpu(self) -> AbstractContextManager[None]:
        """Make programs that this process starts use a GPU with short kernels."""
        return _configured(self._quick)

    def executable(self, source: Path) -> Path:
        """Compile a program unless that is done, with the configuration for measuring next to it."""
        program = self._folder / source.stem
        with _alone(program):
            if not program.exists() or program.stat().st_mtime < max(map(_changed, (source, *PARTS))):
                self._build(source, program)
        return program

    def _build(self, source: Path, program: Path) -> None:
        self._precompile()
        libraries, unfinished = library_folder(), program.with_name(f"{program.name}.unfinished")
        _compile(
            [
                "g++", *self._flags, standard_of(source), "-include", _header_of(source).name, "-x", "c++", str(source),
                "-x", "none", "planted.o", "-o", str(unfinished),
                *LINKER,
                f"-L{libraries}", *self._runtime, "-l:libcuda.so.1", f"-Wl,-rpath,{libraries}", "-lpthread",
            ],
            self._folder,
        )  # fmt: skip
        program.with_name(program.name + ".vgpu").write_text(BRIEF)
        unfinished.rename(program)

    def build_all(self, sources: Iterable[Path]) -> None:
        """Compile many programs, two at a time."""
        self._precompile()
        with ThreadPoolExecutor(2) as pool:
            list(pool.map(self.executable, sources))

    def run(self, case: Case, without: Iterable[str] = ()) -> Ran:
        """Run a case bare, with slow kernels and without some of its waits."""
        names = ",".join(sorted(without))
        done = subprocess.run(
            [str(self.executable(case.source)), case.variant, *(["--without", names] if names else [])],
            capture_output=True,
            text=True,
            errors="replace",
            timeout=SECONDS,
            check=False,
            env={**os.environ, CONFIGURATION: str(self._long), PROVING: "1"},
        )
        return Ran(done.returncode == 0, done.stdout + done.stderr, done.returncode)

    def _precompile(self) -> None:
        if self._precompiled:
            return
        shared = self._folder / "planted.o"
        with _alone(shared):
            if not shared.exists() or shared.stat().st_mtime < max(map(_changed, PARTS)):
                compiler = ["g++", *self._flags, STANDARD]
                for header in (HEADER, WITH_LIBRARY):
                    compiled = self._folder / f"{header.name}.gch"
                    _compile([*compiler, "-x", "c++-header", str(header), "-o", str(compiled)], None)
                _compile([*compiler, "-c", str(SHARED), "-o", "unfinished"], self._folder)
                shared.with_name("unfinished").rename(shared)
        self._precompiled = True


def nvidia_runtime() -> list[str]:
    """How to link NVIDIA's own runtime statically, as `nvcc` does by default."""
    return [str(_cuda_include().parent / "lib" / "libcudart_static.a"), "-ldl", "-lrt"]


def standard_of(source: Path) -> str:
    """Return the compiler's option for the standard that a program needs."""
    return NEWER_STANDARD if _includes(source) & NEWER_HEADERS else STANDARD


def _header_of(source: Path) -> Path:
    """Return the smallest precompiled header with all that a program includes of the C++ library."""
    return WITH_LIBRARY if _includes(source) & _includes(WITH_LIBRARY) else HEADER


def _includes(source: Path) -> set[str]:
    return set(re.findall(r"^#include (<.+>)", source.read_text(), re.MULTILINE))


@contextmanager
def _configured(configuration: Path) -> Iterator[None]:
    os.environ[CONFIGURATION] = str(configuration)
    try:
        yield
    finally:
        del os.environ[CONFIGURATION]


@contextmanager
def _alone(file: Path) -> Iterator[None]:
    """Let no other thread or process build a file meanwhile."""
    with file.with_name(f"{file.name}.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def _changed(path: Path) -> float:
    return path.stat().st_mtime


def _compile(command: list[str], folder: Path | None) -> None:
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
    if done.returncode:
        raise RuntimeError(f"{' '.join(command)}\n{done.stderr}")


def _cuda_include() -> Path:
    for folder in sys.path:
        candidate = Path(folder) / "nvidia" / "cu13" / "include"
        if (candidate / "cuda.h").exists():
            return candidate
    raise RuntimeError("cuda.h is not installed (package nvidia-cuda-runtime)")
