"""When each GPU was idle, and who is to blame: slices for the Perfetto trace (`ffm.report.formats.perfetto`)."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ffm.model.waiting.blame import idle_stretches
from ffm.model.waiting.holders import on_holders
from ffm.model.waiting.path import Stretches, cut_path
from ffm.results.waiting.regions import Regions
from ffm.results.waiting.run_path import RunPath

LISTED = 3
"""Regions that a slice names, those with most of its time."""


@dataclass(frozen=True, slots=True)
class IdleSlice:
    """A time without any work on a GPU, between two pieces of work of its process. Nanoseconds."""

    begin: int
    end: int
    thread: int
    """The one whose launch ended it, from 0."""
    blamed: list[tuple[int, int]]
    """What that thread did meanwhile, or those that it waited for: regions, -1 for what belongs to none, and how long
    each took; longest first.
    """


@dataclass(frozen=True, slots=True)
class IdleGpu:
    """The idle times of one GPU that a process used."""

    process: int
    device: int | None
    """The GPU's number in the process; None if all of them count as one."""
    slices: list[IdleSlice]


def idle_gpus(run: RunPath, found: Regions) -> list[IdleGpu]:
    """Return when each GPU that worked was idle, from its first work to its last."""
    gpus = []
    for number, stretches in idle_stretches(run.timeline, run.work, run.graph):
        process, device = run.work.gpu_named(number)
        known = None if run.work.stream_device is None else device
        gpus.append(IdleGpu(process, known, _slices(run, found, stretches)))
    return gpus


def _slices(run: RunPath, found: Regions, stretches: Stretches) -> list[IdleSlice]:
    pieces = cut_path(run.timeline, run.work, run.graph, on_holders(stretches, run.meetings))
    region, lasting = found.of_pieces(pieces), pieces.end - pieces.begin
    # Pieces lie in the order of the stretches, which they cover completely.
    first = np.searchsorted(np.cumsum(lasting) - lasting, np.cumsum(stretches.end - stretches.begin))
    bounds = np.concatenate(([0], first)).tolist()
    columns = (column.tolist() for column in (stretches.begin, stretches.end, stretches.where))
    return [
        IdleSlice(begin, end, thread, _longest(region[start:stop], lasting[start:stop]))
        for begin, end, thread, start, stop in zip(*columns, bounds[:-1], bounds[1:], strict=True)
    ]


def _longest(region: NDArray[np.int64], lasting: NDArray[np.int64]) -> list[tuple[int, int]]:
    """Return the regions with most time of some pieces, and how much each has."""
    regions, number = np.unique(region, return_inverse=True)
    taken = np.bincount(number.reshape(-1), weights=lasting, minlength=len(regions)).astype(np.int64)
    order = np.argsort(-taken, kind="stable")[:LISTED]
    return list(zip(regions[order].tolist(), taken[order].tolist(), strict=True))
