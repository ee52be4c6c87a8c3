"""Starts the program to measure, after checking what can be wrong with it before it runs."""

from __future__ import annotations

import functools
import os
import shutil
import signal
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from elftools.common.exceptions import ELFError
from elftools.elf.elffile import ELFFile
from elftools.elf.hash import GNUHashSection

from ffm.errors import InstrumentError
from ffm.instrument.session.cut import Why
from ffm.regular_file import open_regular

ELF_MAGIC = b"\x7fELF"
CLASS_64 = 2
"""The fifth byte of an ELF file (EI_CLASS) for 64 bits."""
X86_64 = 62
"""Its two bytes at 18 (e_machine) for x86-64."""

SANITIZERS = {
    "asan": ("AddressSanitizer", "address"),
    "hwasan": ("HWAddressSanitizer", "hwaddress"),
    "msan": ("MemorySanitizer", "memory"),
    "tsan": ("ThreadSanitizer", "thread"),
}
"""Those that refuse or do not survive what is preloaded before them: their name and the compiler's, by their runtime's.
"""


@dataclass(frozen=True, slots=True)
class Ending:
    """How a program ended: an exit code or the name of a signal. `timed_out` means that ffm stopped it; `cut`, that ffm
    ended its recording before, because it had been measured for the time asked for, or was interrupted.
    """

    code: int | None
    signal: str | None
    timed_out: bool
    cut: Why | None = None
    left: bool = False
    """It did not end: it was left running after its recording was ended."""

    @property
    def sound(self) -> bool:
        """Whether the program ended by itself with exit code 0, or was measured until ffm ended its recording."""
        return self.cut is not None or (self.code == 0 and not self.timed_out)

    def __str__(self) -> str:
        if self.left:
            return "was left running"
        if self.timed_out:
            return "exceeded the time limit and was stopped"
        if self.signal is not None:
            return f"was ended by the signal {self.signal}"
        return f"exited with code {self.code}"


def ending_of(wait_status: int | None, *, timed_out: bool, cut: Why | None = None) -> Ending:
    """Convert the status that `os.wait4` returned, or None for a program that was left running."""
    if wait_status is None:
        return Ending(None, None, timed_out, cut, left=True)
    code = os.waitstatus_to_exitcode(wait_status)
    if code >= 0:
        return Ending(code, None, timed_out, cut)
    return Ending(None, _name_of(-code), timed_out, cut)


def _name_of(number: int) -> str:
    """Return the name of a signal, or its number if the C library uses it itself. Python lacks most real-time ones."""
    try:
        return signal.Signals(number).name
    except ValueError:
        return f"SIGRTMIN+{number - signal.SIGRTMIN}" if number >= signal.SIGRTMIN else str(number)


def resolve_program(command: list[str]) -> Path:
    """Return the file that a command executes.

    Raises:
        InstrumentError: The program does not exist, is not executable, is for another machine, or is built with a
            sanitizer.
    """
    if not command:
        raise InstrumentError("No program was given. Name it with its arguments: ffm stage baseline ./app 1 2 3")
    name = command[0]
    path = Path(name)
    if "/" not in name:
        found = shutil.which(name)
        if found is None:
            hint = f" Did you mean ./{name}?" if path.is_file() else ""
            raise InstrumentError(f"The program {name} was not found on the PATH: name it by its path.{hint}")
        path = Path(found)
    if not path.exists():
        raise InstrumentError(f"The program {name} does not exist (looked in {Path.cwd()}): check its path.")
    if path.is_dir():
        raise InstrumentError(f"{name} is a folder: name a program in it.")
    if not os.access(path, os.X_OK):
        raise InstrumentError(f"The program {name} is not executable. Try: chmod +x {name}")
    _require_this_machine(name, path)
    _require_no_sanitizer(name, path)
    return path.absolute()


def _require_this_machine(name: str, path: Path) -> None:
    """Refuse a binary program for 32 bits or another processor, even if the kernel could run it."""
    try:
        with open_regular(path) as file:
            head = file.read(20)
    except OSError:
        return  # an executable file need not be readable
    if head[:4] != ELF_MAGIC or len(head) < 20:
        return
    if head[4] != CLASS_64 or int.from_bytes(head[18:20], "little") != X86_64:
        raise InstrumentError(
            f"The program {name} is not built for 64-bit x86 (`file {name}` says for what), and only such programs can "
            "be measured. Build it for x86-64."
        )


def _require_no_sanitizer(name: str, path: Path) -> None:
    """Refuse a program that uses the runtime of a sanitizer as a library (GCC) or contains it (Clang)."""
    try:
        status = path.stat()
        runtime = _sanitizer_of(path, (status.st_dev, status.st_ino, status.st_size, status.st_mtime_ns))
    except (OSError, ValueError, AssertionError, ELFError):
        return  # not a binary program, or one that is not readable or damaged, which its start will show
    if runtime is not None:
        sanitizer, option = SANITIZERS[runtime]
        raise InstrumentError(
            f"The program {name} is built with {sanitizer}, whose runtime has to come first and watches memory itself, "
            f"so it cannot be measured. Measure a build without -fsanitize={option}."
        )


@functools.lru_cache(maxsize=64)
def _sanitizer_of(path: Path, _state: tuple[int, ...]) -> str | None:
    """Return the runtime that the file at `path` in this state uses or contains."""
    with open_regular(path) as file:
        elf = ELFFile(file)
        dynamic: list[Any] = list(elf.iter_segments("PT_DYNAMIC"))
        needed = [tag.needed for segment in dynamic for tag in segment.iter_tags("DT_NEEDED")]
        exported = elf.get_section_by_name(".gnu.hash")
        for runtime in SANITIZERS:
            contains = isinstance(exported, GNUHashSection) and exported.get_symbol(f"__{runtime}_init")
            if contains or any(library.startswith(f"lib{runtime}.so") for library in needed):
                return runtime
    return None


UNLOADABLE = 127
"""Exit code of glibc's dynamic linker if a library is missing."""


def reason_unreached(program: Path, status: int, output: Path) -> str:
    """Explain why a program that ran and ended with this wait status never came to the gate."""
    if os.WIFEXITED(status) and os.WEXITSTATUS(status) == UNLOADABLE:
        return f"it was not loaded, perhaps because a library is missing; {output} has its output"
    try:
        head = program.read_bytes()[:20]
    except OSError as error:
        return f"it cannot be read ({error})"
    if head[:4] != ELF_MAGIC:
        return "it is not a binary program, or its interpreter is linked statically"
    if program.stat().st_mode & 0o6000:
        return "it is set-uid or set-gid, and the dynamic linker preloads nothing into such programs"
    if "libffm_" in os.environ.get("LD_PRELOAD", ""):
        return "another ffm, which runs this one, already instruments it. Run only one of them"
    if _has_no_interpreter(program):
        return "it is linked statically, so nothing can be preloaded into it. Link it dynamically, without -static"
    return (
        "the variable LD_PRELOAD was removed from its environment, so nothing was preloaded into it. Start it without "
        "what clears its environment"
    )


def _has_no_interpreter(program: Path) -> bool:
    """Whether no dynamic linker loads this program."""
    try:
        with open_regular(program) as file:
            return not any(ELFFile(file).iter_segments("PT_INTERP"))
    except (OSError, ELFError):
        return False
