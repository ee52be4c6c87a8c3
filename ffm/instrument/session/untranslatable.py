"""Why `--watch trace` cannot follow a program: what Frida's Stalker does not translate, or not rightly."""

from __future__ import annotations

import re
from contextlib import suppress
from pathlib import Path

from elftools.common.exceptions import ELFError
from elftools.elf.elffile import ELFFile

UNTRANSLATABLE = {
    "wide": "`--watch trace` cannot follow this program: {module} computes in 512-bit registers (AVX-512), of which "
    "Frida's Stalker loses the upper halves, so that results would be wrong. It was ended before it did. Use `--watch "
    "pages`, or have the program use narrower ones: compile with -mprefer-vector-width=256, or tell the library "
    '(NumPy: NPY_DISABLE_CPU_FEATURES="AVX512F AVX512CD AVX512_SKX"). ffm tells the C library itself, unless '
    "you set glibc.cpu.hwcaps in GLIBC_TUNABLES.",
    "unknown": "`--watch trace` cannot follow this program: {module} contains an instruction that Frida's Stalker does "
    "not know, such as one of AMX. The program was ended before it executed that. Use `--watch pages`.",
    "forbidden": "`--watch trace` cannot follow this program: it forbids that its memory becomes executable "
    "(PR_SET_MDWE), and the trace translates its code into such memory. It was ended before it did. Use `--watch "
    "pages`.",
    "goroutines": "`--watch trace` cannot follow this program: Go compiled {module}, and translated code takes more "
    "room than goroutines' stacks have. It was ended before it used the GPU. Use `--watch pages`.",
}
"""Sentences by what is found; `module` is a file, or what else the code comes from."""


def compiled_by_go(process_id: int) -> str:
    """Return the path of a file in a process that Go compiled and linked; empty if there is none."""
    paths: set[str] = set()
    with suppress(OSError):  # it has ended, which its runner notices
        maps = Path(f"/proc/{process_id}/maps").read_text(errors="replace")
        paths = set(re.findall(r"^\S+ ..x. .* (/.+)$", maps, re.MULTILINE))
    return next((path for path in sorted(paths) if _has_build_information(Path(path))), "")


def _has_build_information(path: Path) -> bool:
    """Return whether it has the section that Go's linker writes, and that remains when symbols are stripped."""
    with suppress(OSError, ELFError), path.open("rb") as file:
        return ELFFile(file).get_section_by_name(".go.buildinfo") is not None
    return False
