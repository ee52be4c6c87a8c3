"""The commands that screens print, ready to be copied."""

from __future__ import annotations

import shlex
from collections.abc import Sequence

from ffm.results.documents.run import Run


def command(words: str, results: str = "") -> str:
    """Return `ffm sequence 1 --results FOLDER`; `results` is the option as the user gave it, or empty."""
    return f"ffm {words} {results}" if results else f"ffm {words}"


def stdin_of(run: Run | None) -> str:
    """Return the file that a run read from its standard input; empty if there is none."""
    return "" if run is None or run.stdin is None else run.stdin.file


def typed(words: Sequence[str], stdin: str) -> str:
    """Return a program with its arguments, as typed in a shell, with the file that it reads: `./app 1 < file`."""
    return f"{shlex.join(words)} < {shlex.quote(stdin)}" if stdin else shlex.join(words)
