"""addr2line of GNU binutils as a batch process: inlined and real functions with their files and lines.

It comes with every gcc, and stands in where llvm-symbolizer is not installed.
"""

from __future__ import annotations

import re
import shutil
import subprocess
from collections.abc import Sequence
from pathlib import Path

from ffm.symbols.demangle import without_clone_suffix
from ffm.symbols.locations import SourceFrame

_NAME = "addr2line"
_UNKNOWN = "??"
_ADDRESS = re.compile(r"0x[0-9a-f]+")
_PLACE = re.compile(r"(?P<file>.*):(?P<line>\d+|\?)(?: \(discriminator \d+\))?")


class Addr2lineError(Exception):
    """addr2line failed on a module; the message is one phrase."""


def find_addr2line() -> str | None:
    """Path of `addr2line` on the search path, or None."""
    return shutil.which(_NAME)


def look_up(program: str, module: Path, addresses: Sequence[int]) -> list[list[SourceFrame]]:
    """Look up link-time addresses of one module with debug information.

    Returns:
        For each address its frames, innermost inlined function first; empty where nothing is known.

    Raises:
        Addr2lineError: the program failed, or answered something else than was asked.
    """
    questions = "".join(f"{address:#x}\n" for address in addresses)
    command = [program, "--addresses", "--inlines", "--functions", "--demangle", f"--exe={module}"]
    answer = subprocess.run(command, input=questions, capture_output=True, text=True, errors="replace", check=False)
    if answer.returncode != 0:
        complaint = answer.stderr.strip().splitlines()
        raise Addr2lineError(complaint[-1] if complaint else f"exit status {answer.returncode}")
    blocks: list[list[str]] = []
    for line in answer.stdout.splitlines():
        if _ADDRESS.fullmatch(line):
            blocks.append([])
        elif blocks:
            blocks[-1].append(line)
    if len(blocks) != len(addresses):
        raise Addr2lineError(f"{len(blocks)} answers to {len(addresses)} questions")
    return [_frames(block) for block in blocks]


def _frames(lines: list[str]) -> list[SourceFrame]:
    """Frames from alternating lines `function` and `file:line`."""
    if len(lines) % 2:
        raise Addr2lineError(f"an answer of {len(lines)} lines")
    frames = []
    for function, place in zip(lines[::2], lines[1::2], strict=True):
        match = _PLACE.fullmatch(place)
        if match is None:
            raise Addr2lineError(f"the place {place}")
        name = "" if function == _UNKNOWN else without_clone_suffix(function)
        file = "" if match["file"] == _UNKNOWN else match["file"]
        if name or file:
            frames.append(SourceFrame(name, file, int(match["line"]) if file and match["line"] != "?" else 0))
    return frames
