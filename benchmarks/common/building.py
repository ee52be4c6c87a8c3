"""Compiles the programs in `programs/`."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from ffm.vgpu.paths import library_folder

PROGRAMS = Path(__file__).parents[1] / "programs"


def build(name: str, folder: Path) -> Path:
    """Compile `programs/NAME.c` as `build_file` does."""
    return build_file(PROGRAMS / f"{name}.c", folder)


def build_file(source: Path, folder: Path) -> Path:
    """Compile a program in C against the virtual GPU into a folder; its PLT slots are bound on first use.

    Raises:
        FileNotFoundError: CUDA's headers are not installed.
        subprocess.CalledProcessError: The program does not compile.
    """
    program = folder / source.stem
    subprocess.run(
        [
            "gcc", "-std=c11", "-D_GNU_SOURCE", "-O2", "-g", str(source), "-o", str(program), f"-I{PROGRAMS}",
            "-isystem", str(cuda_headers()), f"-L{library_folder()}", "-l:libcuda.so.1",
            f"-Wl,-rpath,{library_folder()},-z,lazy",
        ],
        check=True,
    )  # fmt: skip
    return program


def build_cuda(name: str, folder: Path, *options: str) -> Path:
    """Compile `programs/NAME.cu`, which calls the runtime, against the virtual GPU into a folder.

    `options` are for the compiler, besides those that all programs have.

    Raises:
        FileNotFoundError: CUDA's headers are not installed.
        subprocess.CalledProcessError: The program does not compile.
    """
    program = folder / name
    subprocess.run(
        [
            "g++", "-std=c++17", "-O2", "-g", "-x", "c++", str(PROGRAMS / f"{name}.cu"), "-o", str(program),
            f"-I{PROGRAMS}", f"-I{PROGRAMS.parents[1] / 'ffm' / 'vgpu' / 'include'}", "-isystem", str(cuda_headers()),
            f"-L{library_folder()}", "-lcudart", f"-Wl,-rpath,{library_folder()}", *options,
        ],
        check=True,
    )  # fmt: skip
    return program


def cuda_headers() -> Path:
    """Return the folder of CUDA's headers.

    Raises:
        FileNotFoundError: They are not installed.
    """
    places = [Path(entry) / "nvidia" / "cu13" / "include" for entry in sys.path]
    headers = next((place for place in places if (place / "cuda.h").exists()), None)
    if headers is None:
        raise FileNotFoundError("cuda.h is not installed (package nvidia-cuda-runtime): run `make setup` first")
    return headers
