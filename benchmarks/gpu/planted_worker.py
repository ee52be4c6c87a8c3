"""Measures a share of the planted cases: `python planted_worker.py PROGRAMS SCRATCH NUMBER WORKERS`.

The first variant of each program comes before all others. Prints one line of JSON per case.
"""

from __future__ import annotations

import ctypes
import os
import sys
from pathlib import Path

import msgspec
from programs import planted_program

from ffm.errors import FfmError
from tests.planted.building import Programs
from tests.planted.labels import Case, planted_cases
from tests.planted.measuring import Answer, answers_for

NOT_COMPILED = "not compiled"
TOO_FEW_DEVICES = "needs several devices"

SECONDS = 40.0
"""For each run of a program: many of them share the GPU, and each creates its own context."""


class Measured(msgspec.Struct, frozen=True):
    """The outcome of one case."""

    name: str
    answers: list[Answer]
    failure: str = ""


class BuiltPrograms(Programs):
    """Programs that nvcc has built."""

    def __init__(self, folder: Path) -> None:
        """Take them from `folder`; nothing is compiled."""
        self._built = folder

    def executable(self, source: Path) -> Path:
        """Return a program. Raises `FfmError` if nvcc refused it."""
        program = planted_program(self._built, source)
        if not program.exists():
            raise FfmError(NOT_COMPILED)
        return program


def in_order(cases: list[Case]) -> list[Case]:
    """Return the cases, the first variant of each program before all second ones."""
    turns: dict[Path, int] = {}
    keyed = []
    for case in cases:
        turns[case.source] = turns.get(case.source, -1) + 1
        keyed.append((turns[case.source], case))
    return [case for _, case in sorted(keyed, key=lambda item: item[0])]


def main(programs_folder: Path, scratch: Path, number: int, workers: int) -> int:
    """Measure the cases of worker `number`; return the exit status."""
    results = scratch / f"results-{number}"
    virtual = bool(os.environ.get("FFM_PLANTED_VIRTUAL"))
    devices = device_count()
    programs = Programs(scratch / f"programs-{number}") if virtual else BuiltPrograms(programs_folder)
    for case in in_order(planted_cases())[number::workers]:
        if devices < 2 and "cudaSetDevice(" in case.source.read_text():
            _print(Measured(case.name, [], TOO_FEW_DEVICES))
            continue
        try:
            found = Measured(case.name, answers_for(case, programs, results, ["pages"], SECONDS))
        except Exception as error:  # one case must not hide the others
            told = str(error) if isinstance(error, FfmError) else f"{type(error).__name__}: {error}"
            found = Measured(case.name, [], told)
        _print(found)
    return 0


def device_count() -> int:
    """Return how many GPUs the driver has; 0 if there is no driver."""
    try:
        driver = ctypes.CDLL("libcuda.so.1")
    except OSError:
        return 0
    count = ctypes.c_int()
    return count.value if driver.cuInit(0) == 0 and driver.cuDeviceGetCount(ctypes.byref(count)) == 0 else 0


def _print(found: Measured) -> None:
    sys.stdout.write(msgspec.json.encode(found).decode() + "\n")
    sys.stdout.flush()


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1]), Path(sys.argv[2]), int(sys.argv[3]), int(sys.argv[4])))
