"""Applies corrections to a program at every call where they could be applied, whether it is safe or not."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from ffm.driver.catalogue import load_catalogue
from ffm.driver.vocabulary import Kind
from ffm.instrument.recording.reader import read_recordings
from ffm.instrument.session.instruments import Instruments
from ffm.instrument.session.runner import run_instrumented
from ffm.remedy.correct import Comparison, compare_runs
from ffm.remedy.layout import constant
from ffm.remedy.plan_file import MEMORY_BYTES, Correction, Planned
from ffm.report.remedies.outputs import compare_outputs

PROGRAMS = Path(__file__).parent / "programs"

ACTIONS = {
    "cuMemAlloc_v2": ("POOL_ALLOCATION",),
    "cuMemFree_v2": ("POOL_FREE",),
    "cuCtxSynchronize": ("SKIP",),
    "cuStreamSynchronize": ("SKIP",),
    "cuStreamSynchronize_ptsz": ("SKIP",),
    "cuEventSynchronize": ("SKIP",),
    "cuMemcpyHtoD_v2": ("ASYNCHRONOUS", "REUSE", "NO_WAIT"),
    "cuMemcpyHtoD_v2_ptds": ("ASYNCHRONOUS", "REUSE", "NO_WAIT"),
    "cuMemcpyHtoDAsync_v2": ("REUSE",),
    "cuMemcpyHtoDAsync_v2_ptsz": ("REUSE",),
    "cuMemcpyAsync": ("REUSE",),
    "cuMemcpyAsync_ptsz": ("REUSE",),
    "cuMemcpyDtoH_v2": ("ASYNCHRONOUS", "NO_WAIT"),
    "cuMemcpyDtoH_v2_ptds": ("ASYNCHRONOUS", "NO_WAIT"),
}
"""The possible corrections at a call of each function."""


class _NoWaitFunction:
    offset: int | None = None
    offsets: tuple[int, ...] = ()


PACE = 1000
"""Recorded calls, enough for any trial."""


def every_correction(command: list[str], folder: Path, *, tried: bool = False) -> list[Planned]:
    """Trace the program once, and plan all corrections at all stacks that occurred. `tried`: with a trial of each site,
    so that corrections come and go.
    """
    recordings = folder / "recordings"
    recordings.mkdir()
    functions = [function.name for function in load_catalogue().of_kind(*(set(Kind) - {Kind.ENTRY}))]
    instruments = Instruments(recordings, functions, 0, None, lambda driver: _NoWaitFunction())
    run_instrumented(command, instruments, output=folder / "output", timeout_s=60)
    catalogue = load_catalogue()
    calls = {
        (recording.stacks[stack].key, function)
        for recording in read_recordings(recordings)
        for stack, function in zip(
            recording.operations["stack"].tolist(), recording.operations["function"].tolist(), strict=True
        )
        if function < len(catalogue) and catalogue[function].name in ACTIONS
    }
    assert calls, (folder / "output").read_text()
    return [
        Planned(
            site=number,
            key=bytes.fromhex(key),
            function=function,
            actions=sum(constant(f"FFM_REMEDY_{action}") for action in ACTIONS[catalogue[function].name]),
            corrections=(Correction.SKIP,),
            unit=number,
            pace=PACE if tried else 0,
        )
        for number, (key, function) in enumerate(sorted(calls))
    ]


@dataclass(frozen=True)
class Corrected:
    """A program that ran bare and corrected: its counters, and how the runs differ."""

    comparison: Comparison
    differences: list[str]
    output: str
    counts: dict[str, int]
    """Sums over the processes of the last corrected run."""


Play = Callable[..., Corrected]
"""What plays a scene, bare and corrected (`conftest.py`)."""


def correct(
    command: list[str],
    folder: Path,
    *,
    runs: int = 1,
    files: tuple[Path, ...] = (),
    tried: bool = False,
    memory_bytes: int = MEMORY_BYTES,
) -> Corrected:
    """Run a program bare and with every correction; arguments as for `every_correction`."""
    planned = every_correction(command, folder, tried=tried)
    comparison = compare_runs(command, planned, runs=runs, files=list(files), timeout_s=60, memory_bytes=memory_bytes)
    differences, _ = compare_outputs(comparison.bare, comparison.corrected)
    counts: dict[str, int] = {}
    for process in comparison.counted:
        for name, value in process.values.items():
            counts[name] = counts.get(name, 0) + value
    return Corrected(comparison, differences, comparison.corrected[-1].output.decode(), counts)
