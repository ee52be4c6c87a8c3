"""llvm-symbolizer as a batch process: inlined and real functions with their files and lines."""

from __future__ import annotations

import functools
import os
import posixpath
import re
import shutil
import subprocess
from collections.abc import Sequence
from pathlib import Path

from ffm.errors import CauseError
from ffm.symbols.demangle import demangle
from ffm.symbols.locations import SourceFrame

_NAME = "llvm-symbolizer"
_UNKNOWN = "??"
_TWICE = re.compile(r"\A(\./(?:[^/]+/)+)\1")
"""A folder in front of itself."""


@functools.cache
def find_llvm_symbolizer() -> str | None:
    """Return the path of `llvm-symbolizer`, else of the newest `llvm-symbolizer-N` on the search path, else None.

    Debian and Ubuntu install the versioned name with `llvm-N`, and the plain one with `llvm`.
    """
    plain = shutil.which(_NAME)
    if plain:
        return plain
    versions: dict[int, str] = {}
    for folder in os.get_exec_path():
        for candidate in Path(folder).glob(_NAME + "-*"):
            match = re.fullmatch(_NAME + r"-(\d+)", candidate.name)
            if match and os.access(candidate, os.X_OK):
                versions.setdefault(int(match[1]), str(candidate))
    return versions[max(versions)] if versions else None


class SymbolizerError(CauseError):
    """llvm-symbolizer failed; the message is one phrase."""


def symbolize(program: str, places: Sequence[tuple[Path, int]]) -> list[list[SourceFrame]]:
    """Look up link-time addresses of any modules in one process, because starting it costs more than a look-up.

    Returns:
        For each module and address the frames there, innermost inlined function first; empty if nothing is known.

    Raises:
        SymbolizerError: The program failed, or its answers do not fit the queries.
    """
    questions = "".join(f"{_quoted(module)} {address:#x}\n" for module, address in places)
    command = [program, "--inlining", "--functions=linkage", "--demangle"]
    answer = subprocess.run(command, input=questions, capture_output=True, text=True, errors="replace", check=False)
    if answer.returncode != 0:
        complaint = answer.stderr.strip().splitlines()
        raise SymbolizerError(complaint[-1] if complaint else f"exit status {answer.returncode}")
    blocks = answer.stdout.split("\n\n")
    if len(blocks) != len(places) + 1 or blocks[-1].strip():
        raise SymbolizerError(f"{len(blocks) - 1} answers to {len(places)} queries")
    return [_frames(block.strip("\n").split("\n")) for block in blocks[:-1]]


def _quoted(module: Path) -> str:
    """Return the path as llvm-symbolizer reads it: in one kind of quotes, which the path must then not contain."""
    path = str(module)
    mark = "'" if '"' in path else '"'
    if mark in path or "\n" in path:
        raise SymbolizerError("its path contains both kinds of quotation marks, or a line break")
    return f"{mark}{path}{mark}"


def source_path(file: str) -> str:
    """Return the path of a source file in its shortest form.

    Where a compiler was told to write `.` for the folder of a build (`-fdebug-prefix-map`), a file's path begins there,
    but so does that of the folder in which it was compiled, and the symbolizer joins them: `./stdlib/./stdlib/exit.c`.
    """
    return posixpath.normpath(_TWICE.sub(r"\1", file))


def _frames(lines: list[str]) -> list[SourceFrame]:
    """Return frames from alternating lines `function` and `file:line:column`."""
    if len(lines) % 2:
        raise SymbolizerError(f"an answer of {len(lines)} lines")
    frames = []
    for function, place in zip(lines[::2], lines[1::2], strict=True):
        file, line, _column = place.rsplit(":", 2)
        if function == _UNKNOWN and file == _UNKNOWN:
            continue
        frames.append(
            SourceFrame(
                "" if function == _UNKNOWN else demangle(function),  # LLVM leaves some names as they are
                "" if file == _UNKNOWN else source_path(file),
                int(line) if file != _UNKNOWN else 0,
            )
        )
    return frames
