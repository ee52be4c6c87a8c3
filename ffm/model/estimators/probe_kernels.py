"""The passes that take probes out of a run's times (`ffm.model.estimators.replay`), in the subset of Python that Numba
compiles. As in `ffm.model.kernels`, nothing is compiled here.
"""

from __future__ import annotations

from typing import Any, NamedTuple

from numpy.typing import NDArray

from ffm.model.compiled import inner

Columns = NDArray[Any]


class Traced(NamedTuple):
    """The columns of a timeline with probes, and how long those took since the thread's previous row."""

    thread: Columns
    start: Columns
    duration: Columns
    wait: Columns
    gap: Columns
    probe: Columns
    alone: Columns
    """Shape (threads,): whether the thread is the only one of its process that calls the driver."""


class Times(NamedTuple):
    """The columns of a timeline without probes."""

    start: Columns
    duration: Columns
    wait: Columns
    gap: Columns


@inner
def follows(traced: Traced, row: int) -> bool:
    """Return whether the row before this one is of the same thread."""
    return bool(row > 0 and traced.thread[row] == traced.thread[row - 1])


@inner
def probe_before(traced: Traced, row: int) -> int:
    """Return how long the probes before a row took.

    It is known only on average; now and then it was less, but at most the time between the two calls.
    """
    if not follows(traced, row):
        return int(traced.probe[row])
    between = traced.start[row] - (traced.start[row - 1] + traced.duration[row - 1])
    return int(min(traced.probe[row], max(between, 0)))


def probes_of_lone_threads(traced: Traced, time: Columns) -> None:
    """Fill in, for each row, how long the probes before it took; 0 for threads that are not alone."""
    for row in range(len(time)):
        time[row] = probe_before(traced, row) if traced.alone[traced.thread[row]] else 0


def settle_times(traced: Traced, times: Times) -> None:
    """Fill in durations and gaps that go with the starts and waits of threads that are alone.

    Of other threads, only the time between calls shrinks: calls that several threads make at once may reach the GPU in
    another order, and so seem to wait longer.
    """
    for row in range(len(traced.thread)):
        alone = traced.alone[traced.thread[row]]
        if not alone:
            times.start[row] = traced.start[row]
            times.wait[row] = traced.wait[row]
        times.duration[row] = traced.duration[row] - traced.wait[row] + times.wait[row]
        times.gap[row] = traced.gap[row]
        if follows(traced, row):
            between = times.start[row] - (times.start[row - 1] + times.duration[row - 1])
            times.gap[row - 1] = max(between - (0 if alone else probe_before(traced, row)), 0)
