"""What the driver says about the work of a run: which kernels were launched, and which device each context is on."""

from __future__ import annotations

from collections import Counter, defaultdict

import numpy as np
from numpy.typing import NDArray

from ffm.driver.catalogue import load_catalogue
from ffm.driver.vocabulary import Kind
from ffm.evidence.calls import calls_where
from ffm.evidence.handles import StreamTable
from ffm.instrument.recording.names import RecordedKernel
from ffm.instrument.recording.reader import Recording
from ffm.model.grouping import numbered
from ffm.results.columnar.columns import Columns
from ffm.results.documents.measured import ContextDevice, LaunchedKernels


def launched_kernels(recordings: list[Recording], columns: Columns) -> list[LaunchedKernels]:
    """Return the kernels that each stack launched, as far as the driver told their names; by stack.

    `columns` are the operations of the run, by process, thread and start.
    """
    launches = [function.index for function in load_catalogue().of_kind(Kind.LAUNCH)]
    times: dict[int, Counter[str]] = defaultdict(Counter)
    for process, recording in enumerate(recordings):
        if not recording.kernels:
            continue
        rows = np.flatnonzero((columns["process"] == process) & np.isin(columns["function"], launches))
        found = _latest(recording.kernels, columns["handle"][rows], columns["start"][rows])
        stack, named = columns["stack"][rows[found >= 0]], found[found >= 0]
        pairs, counts = np.unique(np.column_stack((stack, named)), axis=0, return_counts=True)
        for (at, kernel), count in zip(pairs.tolist(), counts.tolist(), strict=True):
            times[at][recording.kernels[kernel].name] += count
    return [
        LaunchedKernels(stack=stack, names=[name for name, _ in times[stack].most_common()]) for stack in sorted(times)
    ]


def all_launched(kernels: list[LaunchedKernels], columns: Columns) -> set[str] | None:
    """Return the names of all kernels that a run launched; None if something was launched whose kernels the driver did
    not name, such as a graph.

    `kernels` as `launched_kernels` returns them, and `columns` are the operations of the same run.
    """
    launches = calls_where(columns["function"], lambda function: function.kind is Kind.LAUNCH)
    stacks = np.unique(columns["stack"][launches])
    if not np.isin(stacks, [one.stack for one in kernels]).all():
        return None
    return {name for one in kernels for name in one.names}


def _latest(kernels: list[RecordedKernel], handle: NDArray[np.uint64], time: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return for each launch the last kernel that had its handle by then; -1 if none had."""
    found = np.full(len(handle), -1, np.int64)
    by_handle: dict[int, list[int]] = defaultdict(list)
    for number, kernel in enumerate(kernels):
        by_handle[kernel.handle].append(number)
    order = np.argsort(handle, kind="stable")
    first = np.searchsorted(handle[order], np.array(list(by_handle), np.uint64), side="left")
    last = np.searchsorted(handle[order], np.array(list(by_handle), np.uint64), side="right")
    for numbers, begin, end in zip(by_handle.values(), first.tolist(), last.tolist(), strict=True):
        rows = order[begin:end]
        numbers.sort(key=lambda number: kernels[number].time)
        since = [kernels[number].time for number in numbers]
        place = np.searchsorted(since, time[rows], side="right") - 1
        found[rows] = np.where(place >= 0, np.array(numbers)[place.clip(0)], -1)
    return found


def context_devices(recordings: list[Recording]) -> list[ContextDevice]:
    """Return the devices of the contexts that a run used."""
    return [
        ContextDevice(
            process=process,
            context=int(row["number"]),
            device=int(row["device"]),
            uuid=bytes(row["uuid"]).hex(),
            multiprocessors=int(row["multiprocessors"]),
            threads=int(row["threads"]),
        )
        for process, recording in enumerate(recordings)
        for row in recording.contexts
    ]


def device_of_contexts(
    process: NDArray[np.int64], context: NDArray[np.int64], devices: list[ContextDevice]
) -> NDArray[np.int32]:
    """Return the device of each context, given as its process and its number there; -1 where it is unknown."""
    known = {(one.process, one.context): one.device for one in devices}
    number, first = numbered(process, context)
    keys = zip(process[first].tolist(), context[first].tolist(), strict=True)
    return np.array([known.get(key, -1) for key in keys], np.int32)[number]


def devices_of(streams: StreamTable, devices: list[ContextDevice]) -> NDArray[np.int32] | None:
    """Return the device of each stream's context, -1 where it is unknown; None if that is so for all."""
    device = device_of_contexts(streams.process, streams.context, devices)
    return device if (device >= 0).any() else None
