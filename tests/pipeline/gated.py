"""The lines of `programs/gated.cu`, in which threads and the main thread wait, that tests expect to be named."""

from __future__ import annotations

from pathlib import Path

PROGRAM = Path(__file__).parent / "programs" / "gated.cu"
_LINES = PROGRAM.read_text().splitlines()
BY_THREADS = next(number for number, line in enumerate(_LINES, 1) if "/* by the threads */" in line)
BY_MAIN = next(number for number, line in enumerate(_LINES, 1) if "/* by main */" in line)
