"""Measures scripts of third-party clients on the virtual GPU, and finds their marked lines."""

from __future__ import annotations

import re
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from ffm.results.documents.analysis import Analysis
from ffm.results.folder.paths import ResultsFolder
from ffm.stages.analysis.stage import run_analysis
from ffm.stages.measure import Request
from ffm.stages.registry import MEASURING_STAGES
from ffm.vgpu.paths import library_folder

HERE = Path(__file__).parent
BUILD = HERE.parents[1] / "build"
TARGETS = HERE.parents[1] / "benchmarks" / "gpu" / "targets"

_MARK = re.compile(r"# (problem|needed):")


@contextmanager
def virtual_gpu(configuration: str = "", **variables: str) -> Iterator[None]:
    """Make programs find the virtual GPU, with a configuration in this folder and additional environment variables."""
    with pytest.MonkeyPatch.context() as environment:
        environment.setenv("LD_LIBRARY_PATH", str(library_folder()))
        if configuration:
            environment.setenv("VGPU_CONFIGURATION", str(HERE / configuration))
        for name, value in variables.items():
            environment.setenv(name, value)
        yield


def measured(python: Path, script: Path, folder: Path, *, ordinary_memory: bool = True) -> Analysis:
    """Return the findings of all stages on a script; results are in `folder`."""
    request = Request([str(python), str(script)], ResultsFolder(folder), 300.0, ordinary_memory=ordinary_memory)
    for stage in MEASURING_STAGES.values():
        stage(request)
    return run_analysis(ResultsFolder(folder))


def marked_line(script: Path) -> int:
    """Return the number of the only line that ends by saying what is wrong with it, or that it is needed."""
    (line,) = (number for number, row in enumerate(script.read_text().splitlines(), 1) if _MARK.search(row))
    return line


def printed(python: Path, *scripts: str) -> list[str]:
    """Return what targets print when run bare."""
    return [
        subprocess.run([python, TARGETS / f"{name}.py"], capture_output=True, text=True, check=True).stdout
        for name in scripts
    ]
