"""Just-in-time compilation: time that the driver spends producing machine code for this GPU (dissertation 3.4)."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from ffm.driver.device_code import DeviceCode, device_code
from ffm.driver.vocabulary import Kind
from ffm.evidence.calls import calls_where
from ffm.results.columnar.columns import Columns
from ffm.results.documents.measured import Tracing
from ffm.results.documents.notes import AnyNote, CompiledCode, LoadedCode
from ffm.results.documents.run import Run
from ffm.results.documents.stacks import Module

WORTH_SAYING = 0.01
"""Share of the run, spent loading device code that needs no compiling, above which it is reported."""


def compiled_modules(run: Run | None, modules: list[Module], capability: int) -> dict[Path, list[DeviceCode]]:
    """Return the files of a run with device code that must be compiled for a GPU of this compute capability."""
    paths = dict.fromkeys(Path(module.path) for module in modules if module.path)
    if run is not None:
        paths |= dict.fromkeys(Path(process.executable) for process in run.processes if process.executable)
    found = {path: device_code(path) for path in paths}
    return {
        path: [part for part in code if part.compiled_for(capability)]
        for path, code in found.items()
        if any(part.compiled_for(capability) for part in code)
    }


def loading_seconds(columns: Columns) -> float:
    """Return the seconds that a thread spent in calls that load or look up device code: the one that spent most, since
    threads and processes can do so at the same time.

    The driver may compile in any of them: when a module is loaded, or only when its first function is requested.
    """
    chosen = calls_where(
        columns["function"],
        lambda function: function.kind is Kind.MODULE and not function.base.endswith(("Unload", "Destroy")),
    )
    if not chosen.any():
        return 0.0
    _, thread = np.unique(
        np.stack([columns["process"][chosen], columns["thread"][chosen]]), axis=1, return_inverse=True
    )
    return float(np.bincount(thread.ravel(), weights=columns["duration"][chosen]).max()) / 1e9


def compilation_notes(tracing: Tracing, columns: Columns, wall_s: float) -> list[AnyNote]:
    """Return what a reader should know about code that was compiled while the program ran."""
    seconds = loading_seconds(columns)
    capability = tracing.compute_capability
    compiled = compiled_modules(tracing.run, tracing.modules, capability) if capability else {}
    if not compiled:
        if wall_s > 0 and seconds > WORTH_SAYING * wall_s:
            return [LoadedCode(seconds=seconds, wall_s=wall_s)]
        return []
    parts = [part for code in compiled.values() for part in code]
    return [
        CompiledCode(
            files=[path.name for path in compiled],
            seconds=seconds,
            wall_s=wall_s,
            machine=sorted({architecture for part in parts for architecture in part.machine}),
            capability=capability,
        )
    ]
