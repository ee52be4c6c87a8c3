"""The planted suite of needed and not-needed cases, compiled by nvcc for the GPU, or for the virtual one."""

from __future__ import annotations

import contextlib
import os
import shutil
import subprocess
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from steps import ROOT, FailedStep, Machine, Row, SkippedStep, last_line

from ffm.stages.errors import FfmError
from tests.planted.building import INCLUDES, Programs
from tests.planted.labels import PROGRAMS, Case, planted_cases
from tests.planted.measuring import Answer, answers_for
from tests.planted.report import disagreements, score

RESERVE = 5.0
"""Seconds that a case may need."""


class NvccPrograms(Programs):
    """The programs as nvcc builds them."""

    def __init__(self, folder: Path, architecture: str, driver: str) -> None:
        """Keep executables for GPUs of `architecture` in `folder`, linked with the library `driver`."""
        super().__init__(folder)
        self._driver = driver
        self._programs = folder
        self._architecture = architecture
        self.refused: dict[str, str] = {}
        """Why nvcc did not compile a program, by its name."""

    def executable(self, source: Path) -> Path:
        """Compile a program if it is not yet. Raises `FfmError` where nvcc refuses it."""
        program = self._programs / source.stem
        if program.exists():
            return program
        done = subprocess.run(
            [
                "nvcc", "-std=c++17", "-O1", "-g", f"-arch={self._architecture}", f"-I{PROGRAMS}", f"-I{INCLUDES}",
                "-include", "planted.h", "-x", "cu", str(source), "-o", str(program), "-Xlinker", self._driver,
            ],
            capture_output=True,
            text=True,
            check=False,
        )  # fmt: skip
        if done.returncode:
            self.refused[source.stem] = last_line(done.stderr or done.stdout)
            raise FfmError(f"nvcc refuses {source.name}: {self.refused[source.stem]}")
        return program

    def build(self, cases: list[Case]) -> None:
        """Compile what is not refused, as many at a time as there are processors."""

        def attempt(source: Path) -> None:
            # A refusal is said again when the case's turn comes.
            with contextlib.suppress(FfmError):
                self.executable(source)

        with ThreadPoolExecutor(os.cpu_count()) as pool:
            list(pool.map(attempt, sorted({case.source for case in cases})))


def check_planted(machine: Machine) -> list[Row]:
    """Measure every case and compare the verdicts with the labels, as far as there is time."""
    cases = planted_cases()
    with tempfile.TemporaryDirectory() as scratch:
        folder = Path(scratch) / "programs"
        programs: Programs
        if machine.virtual:
            programs = Programs(folder)
            os.environ["LD_LIBRARY_PATH"] = str(ROOT / "ffm" / "vgpu" / "lib")
        else:
            if shutil.which("nvcc") is None:
                raise SkippedStep("there is no nvcc")
            if not machine.architecture:
                raise FailedStep("the GPU's architecture is not known")
            compiled = NvccPrograms(folder, machine.architecture, machine.driver)
            compiled.build(cases)
            programs = compiled
        answers: list[Answer] = []
        failures: list[Row] = []
        done = 0
        for case in cases:
            if time.monotonic() > machine.deadline - RESERVE:
                break
            done += 1
            try:
                answers += answers_for(case, programs, Path(scratch) / "results", "pages")
            except Exception as error:  # one case does not hide the others
                failures.append(Row(case.name, False, str(error)))
    rows = [Row("all", None, f"{score(answers)}; {done} of {len(cases)} cases, {len(failures)} failed")]
    rows += [Row("verdict", False, difference) for difference in disagreements(answers)]
    return rows + failures
