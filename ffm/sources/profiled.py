"""Turns what a profiler recorded into what the model works on: a timeline, and what its rows do on the GPU.

A profiler times the GPU's work, so those times are given. It does not say how long a call waited: that follows from the
end of the work for which the call waits (CUDA Driver API, "API synchronization behavior").
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ffm.driver.catalogue import DriverFunction
from ffm.driver.vocabulary import Awaits, Effect, Memory
from ffm.driver.vocabulary import Kind as DriverKind
from ffm.evidence.device_work import WAITS
from ffm.evidence.operations import MODEL_KINDS
from ffm.model.device import IDLE, MOST_DEVICES, PURE_WAITS, Action, DeviceWork, Direction, stream_of_device
from ffm.model.timeline import Kind, Timeline
from ffm.sources.meanings import meaning
from ffm.sources.profile import NO_STREAM, Place, Profile

_COPIES = (DriverKind.TRANSFER, DriverKind.SET)
_PIECE_BYTES = 1 << 20
"""The driver copies pageable memory to its own, piece by piece, for the GPU to fetch. The GPU begins when the first
piece is there: it did for seven uploads to an A100 and five to an H100.
"""


@dataclass(frozen=True, slots=True)
class ProfiledRun:
    """A profiled run as the model sees it. Rows are the profile's calls."""

    timeline: Timeline
    work: DeviceWork
    """`measured` holds the GPU's times, as the profiler gives them."""


def profiled_run(profile: Profile, site: NDArray[np.int32]) -> ProfiledRun:
    """Return the model's view of a profile; `site` groups its calls, shape (calls,)."""
    calls = profile.calls
    meanings = [meaning(name) for name in profile.names]
    kinds = [MODEL_KINDS.get(one.kind, Kind.OTHER) if one is not None else Kind.OTHER for one in meanings]
    kind = np.array(kinds, np.uint8)[calls.name]
    first, began, gpu, bytes_, stream = _work_of_calls(profile)
    action = _actions(profile, meanings, first)
    devices = _devices(profile)
    targets = _Targets(profile, stream)
    _name_streams(profile, meanings, action, targets, devices)
    ends = _Ends(profile)
    wait = _waits(profile, action, targets, ends, first)
    in_pieces = (action == Action.ENQUEUE) & _from_pageable(profile, first) & (bytes_ > _PIECE_BYTES)
    wait[in_pieces] = ((calls.end - calls.start) * (1 - _PIECE_BYTES / bytes_.clip(1)))[in_pieces].astype(np.int64)
    if (partners := profile.partners) is not None:
        wait = np.where(partners.awaits >= 0, partners.waited, wait)
        action[partners.waited > 0] = Action.WAIT_THREAD
    process, number = np.unique(calls.process, return_inverse=True)
    _, numbers = np.unique(np.column_stack((calls.process, calls.thread)), axis=0, return_inverse=True)
    thread: NDArray[np.int32] = numbers.reshape(-1).astype(np.int32)
    process_of_thread = np.zeros(int(thread.max(initial=-1)) + 1, np.int32)
    process_of_thread[thread] = number
    place = {one: index for index, one in enumerate(process.tolist())}
    owner = np.array([place.get(one.process, 0) for one in profile.streams], np.int32)
    transfers = np.array([one is not None and one.kind in _COPIES for one in meanings])[calls.name]
    begin = int(calls.start.min()) if len(calls) else 0
    timeline = Timeline(
        thread=thread,
        start=calls.start - begin,
        duration=calls.end - calls.start,
        wait=wait,
        gap=_gaps(profile, thread),
        site=site,
        kind=kind,
        problem=np.zeros(len(calls), np.uint8),
        first_use=np.zeros(len(calls), np.int64),
        occurrences=np.ones(len(calls), np.int64),
    )
    return ProfiledRun(
        timeline,
        DeviceWork(
            action=action,
            stream=targets.stream.astype(np.int32),
            event=targets.event.astype(np.int32),
            partner=np.full(len(calls), -1, np.int32),
            copied=np.where(transfers, bytes_, 0),
            measured=gpu,
            process_of_thread=process_of_thread,
            legacy=_legacy_streams(profile, place),
            stream_process=owner,
            events=int(targets.event.max(initial=-1)) + 1,
            began=np.where(gpu >= 0, (began - begin).clip(0), -1),
            stream_device=devices,
            independent=None if devices is None else _elsewhere(profile, devices),
            direction=_directions(profile, first, transfers),
            awaits=None if partners is None else partners.awaits.astype(np.int32),
            encounters=None if partners is None else partners.encounters,
        ),
    )


def _legacy_streams(profile: Profile, place: dict[int, int]) -> NDArray[np.int32]:
    """Return the legacy default stream of each process, by the processes' numbers; -1 for none."""
    legacy = np.full(len(place), -1, np.int32)
    for index, one in enumerate(profile.streams):
        if one.legacy and one.process in place:
            legacy[place[one.process]] = index
    return legacy


def _directions(profile: Profile, first: NDArray[np.int64], transfers: NDArray[np.bool_]) -> NDArray[np.uint8]:
    """Return each call's `Direction`, from its first piece of work."""
    work = profile.work
    has = (first >= 0) & transfers

    def on_host(place: NDArray[Any]) -> NDArray[np.bool_]:
        return np.isin(place[first], (Place.PAGEABLE, Place.PINNED)) if len(work) else has

    def on_device(place: NDArray[Any]) -> NDArray[np.bool_]:
        return (place[first] == Place.DEVICE) if len(work) else has

    up = on_host(work.source) & on_device(work.destination)
    down = on_device(work.source) & on_host(work.destination)
    chosen = [~has, up, down]
    return np.select(chosen, [Direction.NONE, Direction.TO_DEVICE, Direction.FROM_DEVICE], Direction.OTHER).astype(
        np.uint8
    )


def _from_pageable(profile: Profile, first: NDArray[np.int64]) -> NDArray[np.bool_]:
    """Return which calls upload from pageable memory, by their first piece of work."""
    work = profile.work
    if not len(work):
        return np.zeros(len(first), bool)
    found: NDArray[np.bool_] = (
        (first >= 0) & (work.source[first] == Place.PAGEABLE) & (work.destination[first] == Place.DEVICE)
    )
    return found


def _devices(profile: Profile) -> NDArray[np.int32] | None:
    """Return the device of each stream; None if that is not known of all that have work."""
    device = np.array([one.device for one in profile.streams], np.int64)
    used = device[np.unique(profile.work.stream)]
    if not len(used) or used.min() < 0 or used.max() > MOST_DEVICES:
        return None
    return device.clip(0, MOST_DEVICES).astype(np.int32)


def _name_streams(
    profile: Profile,
    meanings: list[DriverFunction | None],
    action: NDArray[np.uint8],
    targets: _Targets,
    devices: NDArray[np.int32] | None,
) -> None:
    """Tell the streams of waits in place, as `Action` says them: a synchronization is for its device alone where the
    process has several.
    """
    # A wait for a stream that no one named is taken to be for all of them, which it is if there is only one.
    action[(action == Action.WAIT_STREAM) & (targets.stream == NO_STREAM)] = Action.WAIT_CONTEXT
    targets.stream[action == Action.WAIT_CONTEXT] = NO_STREAM
    if devices is None:
        return
    calls = profile.calls
    waits = np.array([one is not None and one.awaits is Awaits.CONTEXT for one in meanings], bool)[calls.name]
    rows = np.flatnonzero(waits & (action == Action.WAIT_CONTEXT))
    owner = np.array([one.process for one in profile.streams], np.int64)
    stream = stream_of_device(calls.process[rows], targets.device[rows], owner, devices)
    action[rows[stream == IDLE]] = Action.WAIT_STREAM
    targets.stream[rows] = stream.clip(NO_STREAM)


def _elsewhere(profile: Profile, devices: NDArray[np.int32]) -> NDArray[np.bool_] | None:
    """Return which streams are on another device than the default stream that counts as their process's; None if none
    is: default streams order nothing on other devices.
    """
    of_legacy = {
        one.process: device for one, device in zip(profile.streams, devices.tolist(), strict=True) if one.legacy
    }
    found = [
        of_legacy.get(one.process, device) != device
        for one, device in zip(profile.streams, devices.tolist(), strict=True)
    ]
    return np.array(found, bool) if any(found) else None


def _work_of_calls(
    profile: Profile,
) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int64], NDArray[np.int64], NDArray[np.int64]]:
    """Return, for each call, one piece of the GPU's work that it enqueued (-1: none), when the first of it began (-1),
    the nanoseconds that all of it took (-1), its bytes and its stream (`NO_STREAM`). A graph's launch takes from the
    start of its first node to the end of its last.
    """
    calls, work = profile.calls, profile.work
    first = np.full(len(calls), -1, np.int64)
    first[work.call[::-1]] = np.arange(len(work))[::-1]
    begin, end = np.full(len(calls), np.iinfo(np.int64).max), np.full(len(calls), -1, np.int64)
    np.minimum.at(begin, work.call, work.start)
    np.maximum.at(end, work.call, work.end)
    bytes_ = np.zeros(len(calls), np.int64)
    np.add.at(bytes_, work.call, work.bytes)
    has = first >= 0
    gpu = np.where(has, end - np.where(has, begin, 0), -1)
    stream = np.where(has, work.stream[first] if len(work) else NO_STREAM, NO_STREAM)
    return first, np.where(has, begin, -1), gpu, bytes_, stream


def _actions(profile: Profile, meanings: list[DriverFunction | None], first: NDArray[np.int64]) -> NDArray[np.uint8]:
    """Return what each call does on the GPU."""
    calls, work = profile.calls, profile.work
    action = np.full(len(calls), Action.NONE, np.uint8)
    action[first >= 0] = Action.ENQUEUE
    source = np.where(first >= 0, work.source[first] if len(work) else 0, Place.UNKNOWN)
    destination = np.where(first >= 0, work.destination[first] if len(work) else 0, Place.UNKNOWN)
    for number, function in enumerate(meanings):
        if function is None:
            continue
        mine = calls.name == number
        if function.kind is DriverKind.SYNCHRONIZATION:
            action[mine] = WAITS[function.awaits]
        elif function.effect is Effect.RECORD_EVENT:
            action[mine] = Action.RECORD_EVENT
        elif function.effect is Effect.WAIT_EVENT:
            action[mine] = Action.STREAM_WAIT_EVENT
        elif function.kind is DriverKind.FREE and function.memory not in (Memory.ASYNCHRONOUS, Memory.NONE):
            action[mine] = Action.WAIT_CONTEXT
        elif function.effect is Effect.LOAD_CODE:
            action[mine] = Action.WAIT_CONTEXT  # as on all GPUs that were seen
        elif function.kind is DriverKind.TRANSFER:
            moved = mine & (first >= 0)
            to_host = (destination == Place.PAGEABLE) | ((destination == Place.PINNED) & (not function.asynchronous))
            action[moved & to_host] = Action.ENQUEUE_AND_WAIT
            if not function.asynchronous:
                action[moved & (source == Place.PAGEABLE)] = Action.WAIT_AND_ENQUEUE
                action[moved & (source == Place.PINNED)] = Action.ENQUEUE_AND_WAIT
    return action


class _Targets:
    """The stream and the event of each call: of the work that it enqueues, or as the profiler says."""

    def __init__(self, profile: Profile, stream: NDArray[np.int64]) -> None:
        self.stream = stream.copy()
        self.event = np.full(len(stream), -1, np.int64)
        self.device = np.full(len(stream), -1, np.int64)
        waits = profile.waits
        named = waits.stream != NO_STREAM
        self.stream[waits.call[named]] = waits.stream[named]
        self.event[waits.call] = waits.event
        self.device[waits.call] = waits.device


class _Ends:
    """When the work ended that calls before some moment had enqueued."""

    def __init__(self, profile: Profile) -> None:
        work, calls = profile.work, profile.calls
        earlier = profile.unlaunched
        before_all = np.full(len(earlier), calls.start.min(initial=0) - 1)
        called = np.concatenate((before_all, calls.start[work.call]))
        process = np.concatenate((earlier.process, calls.process[work.call]))
        end = np.concatenate((earlier.end, work.end))
        self._of_stream = _latest(np.concatenate((earlier.stream, work.stream)), called, end)
        self._of_process = _latest(process, called, end)
        devices = np.array([one.device for one in profile.streams] or [-1], np.int64)
        stream = np.concatenate((earlier.stream, work.stream))
        places = np.column_stack((process, devices[stream]))
        self._places, place = np.unique(places, axis=0, return_inverse=True)
        self._of_place = _latest(place.reshape(-1), called, end)

    def stream(self, stream: int, before: NDArray[np.int64]) -> NDArray[np.int64]:
        """Return when the stream's work was over that was enqueued before each moment; -1 if there was none."""
        return _at(self._of_stream.get(stream), before)

    def process(self, process: int, before: NDArray[np.int64]) -> NDArray[np.int64]:
        """Likewise for all streams of a process."""
        return _at(self._of_process.get(process), before)

    def device(self, process: int, device: int, before: NDArray[np.int64]) -> NDArray[np.int64]:
        """Likewise for all streams of a process's device."""
        place = np.flatnonzero((self._places == (process, device)).all(axis=1))
        return _at(self._of_place.get(int(place[0])) if len(place) else None, before)


_Latest = dict[int, tuple[NDArray[np.int64], NDArray[np.int64]]]


def _latest(group: NDArray[np.int64], called: NDArray[np.int64], end: NDArray[np.int64]) -> _Latest:
    order = np.lexsort((called, group))
    found: _Latest = {}
    for rows in np.split(order, np.flatnonzero(np.diff(group[order])) + 1) if len(order) else []:
        found[int(group[rows[0]])] = (called[rows], np.maximum.accumulate(end[rows]))
    return found


def _at(latest: tuple[NDArray[np.int64], NDArray[np.int64]] | None, before: NDArray[np.int64]) -> NDArray[np.int64]:
    if latest is None:
        return np.full(len(before), -1, np.int64)
    called, end = latest
    place = np.searchsorted(called, before) - 1
    return np.where(place >= 0, end[place.clip(0)], -1)


def _waits(
    profile: Profile, action: NDArray[np.uint8], targets: _Targets, ends: _Ends, first: NDArray[np.int64]
) -> NDArray[np.int64]:
    """Return the nanoseconds that each call waited for the GPU."""
    calls = profile.calls
    over = _over(profile, action, targets, ends)
    duration = calls.end - calls.start
    launches = duration[(action == Action.ENQUEUE) & (first >= 0)]
    enqueuing = int(np.median(launches)) if len(launches) else 0
    wait = np.zeros(len(calls), np.int64)
    pure = np.isin(action, PURE_WAITS) & (over > calls.start)
    wait[pure] = duration[pure]
    frees = np.array([one is not None and one.kind is DriverKind.FREE for one in map(meaning, profile.names)])
    works_after = np.isin(action, (Action.WAIT_CONTEXT,)) & frees[calls.name] | (action == Action.WAIT_AND_ENQUEUE)
    wait[works_after] = np.minimum(duration, over - calls.start)[works_after].clip(0)
    own = action == Action.ENQUEUE_AND_WAIT
    wait[own] = (duration - enqueuing)[own].clip(0)
    return wait


def _over(profile: Profile, action: NDArray[np.uint8], targets: _Targets, ends: _Ends) -> NDArray[np.int64]:
    """Return when the work was over that each waiting call waits for; -1 if there was none."""
    calls = profile.calls
    over = np.full(len(calls), -1, np.int64)
    everything = action == Action.WAIT_CONTEXT
    legacy = np.array([one.legacy for one in profile.streams] or [False])
    default = (targets.stream >= 0) & legacy[targets.stream.clip(0)]
    of_stream = np.isin(action, (Action.WAIT_STREAM, Action.WAIT_AND_ENQUEUE)) & (targets.stream >= 0)
    for process in np.unique(calls.process).tolist():
        mine = np.flatnonzero((everything | (of_stream & default)) & (calls.process == process))
        over[mine] = ends.process(process, calls.start[mine])
        for stream in np.unique(targets.stream[mine][(targets.stream[mine] >= 0) & everything[mine]]).tolist():
            mine = np.flatnonzero(everything & (calls.process == process) & (targets.stream == stream))
            over[mine] = ends.device(process, profile.streams[stream].device, calls.start[mine])
    for stream in np.unique(targets.stream[of_stream & ~default]).tolist():
        mine = np.flatnonzero(of_stream & ~default & (targets.stream == stream))
        over[mine] = ends.stream(stream, calls.start[mine])
    recorded = np.flatnonzero((action == Action.RECORD_EVENT) & (targets.event >= 0) & (targets.stream >= 0))
    waiting = np.flatnonzero((action == Action.WAIT_EVENT) & (targets.event >= 0))
    done = np.full(len(calls), -1, np.int64)
    for stream in np.unique(targets.stream[recorded]).tolist():
        mine = recorded[targets.stream[recorded] == stream]
        done[mine] = ends.stream(stream, calls.start[mine])
    latest = _last_records(targets.event[recorded], calls.start[recorded], done[recorded])
    for event in np.unique(targets.event[waiting]).tolist():
        mine = waiting[targets.event[waiting] == event]
        over[mine] = _at(latest.get(event), calls.start[mine])
    return over


def _last_records(event: NDArray[np.int64], time: NDArray[np.int64], done: NDArray[np.int64]) -> _Latest:
    """Return, for each event, the times of its records, and when the work before each was over."""
    order = np.lexsort((time, event))
    found: _Latest = {}
    for rows in np.split(order, np.flatnonzero(np.diff(event[order])) + 1) if len(order) else []:
        found[int(event[rows[0]])] = (time[rows], done[rows])
    return found


def _gaps(profile: Profile, thread: NDArray[np.int32]) -> NDArray[np.int64]:
    """Return the time from the end of each call to its thread's next, or to the end of the run."""
    calls = profile.calls
    last = int(max(calls.end.max(initial=0), profile.work.end.max(initial=0)))
    following = np.append(calls.start[1:], last)
    following[np.append(thread[1:] != thread[:-1], True)] = last
    return np.asarray(following - calls.end, np.int64).clip(0)
