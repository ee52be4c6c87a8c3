"""Reads an OTF2 archive into columns, in a process of its own: `python -m ffm.sources.otf2_child ANCHOR OUTPUT`.

The reader is a C library. Whatever a damaged or hostile archive does to it stays in this process.
"""

from __future__ import annotations

import json
import sys
from array import array
from collections.abc import Callable
from typing import Any

import numpy as np

from ffm.symbols.demangle import demangle

NAMES = "names"

COLUMNS: dict[str, tuple[str, ...]] = {
    "interval": ("location", "region", "start", "end", "stream"),
    "copy": ("location", "start", "end", "bytes", "to_host"),
    "send": ("location", "interval", "peer", "comm", "tag"),
    "receive": ("location", "interval", "peer", "comm", "tag"),
    "collective": ("location", "interval", "comm"),
    "barrier": ("location", "interval", "team", "instance"),
    "team": ("location", "team", "instance", "time", "forks"),
    "lock": ("location", "lock", "order", "requested", "time", "releases"),
}
"""Tables. An `interval` is a region that was entered and left; `stream` is the place of the GPU's location that an
attribute names, -1 without one. The `interval` of other tables is the innermost one at that time. A `peer` is the
location that a message comes from or goes to. A `team` of threads begins with one that `forks`. A `lock` is acquired,
or `releases` is 1; `order` counts how often it was, and `requested` is when the region that acquires it was entered.
Times are nanoseconds since the first event.
"""

STREAM_ATTRIBUTES = ("CUDA_STREAM_REF", "OPENCL_QUEUE_REF")
BARRIERS = ("BARRIER", "IMPLICIT_BARRIER")


class Collector:
    """Turns events into columns."""

    def __init__(self, trace: Any) -> None:
        self.tables = {name: {column: array("q") for column in columns} for name, columns in COLUMNS.items()}
        definitions = trace.definitions
        self.locations = {location: place for place, location in enumerate(definitions.locations)}
        self.regions = {region: place for place, region in enumerate(definitions.regions)}
        self._barriers = {
            one for one in self.regions if _word(one.paradigm) == "OPENMP" and _word(one.region_role) in BARRIERS
        }
        self.comms = {comm: place for place, comm in enumerate(definitions.comms)}
        self.resolution = int(trace.timer_resolution)
        self.read = [0] * len(self.locations)
        self.unmatched = [0] * len(self.locations)
        self._open: list[list[int]] = [[] for _ in self.locations]
        self._copies: dict[tuple[int, Any, int], list[int]] = {}
        self._team: list[list[tuple[int, int]]] = [[] for _ in self.locations]
        self._instances: dict[tuple[int, int], int] = {}
        self._passed: dict[tuple[int, int, int], int] = {}
        self._first: int | None = None
        self._forked = [-1] * len(self.locations)
        self._last = [0] * len(self.locations)
        self._released: dict[tuple[int, int], int] = {}

    def add(self, location: Any, event: Any) -> None:
        """Add one event."""
        place = self.locations[location]
        if self._first is None:
            self._first = event.time
        now = (event.time - self._first) * 10**9 // self.resolution
        self.read[place] += 1
        self._last[place] = now
        handler = _HANDLERS.get(type(event).__name__)
        if handler is not None:
            handler(self, place, now, event)

    def end(self) -> None:
        """Close what is open: the events of its end are lost."""
        for place, rows in enumerate(self._open):
            for row in rows:
                self.tables["interval"]["end"][row] = self._last[place]
                self.unmatched[place] += 1

    def _enter(self, place: int, now: int, event: Any) -> None:
        region = event.region
        row = self._append("interval", place, self.regions[region], now, now, self._stream(event))
        self._open[place].append(row)
        if self._team[place] and region in self._barriers:
            team, instance = self._team[place][-1]
            number = self._passed.get((place, team, instance), 0)
            self._passed[place, team, instance] = number + 1
            self._append("barrier", place, row, team, instance << 32 | number)

    def _leave(self, place: int, now: int, event: Any) -> None:
        if not self._open[place]:
            self.unmatched[place] += 1
            return
        row = self._open[place].pop()
        self.tables["interval"]["end"][row] = now
        if (stream := self._stream(event)) >= 0:
            self.tables["interval"]["stream"][row] = stream

    def _put(self, place: int, now: int, event: Any) -> None:
        self._begin_copy(place, now, event, 1)

    def _get(self, place: int, now: int, event: Any) -> None:
        self._begin_copy(place, now, event, 0)

    def _complete(self, place: int, now: int, event: Any) -> None:
        waiting = self._copies.get((place, event.win, event.matching_id))
        if waiting:
            self.tables["copy"]["end"][waiting.pop(0)] = now
        else:
            self.unmatched[place] += 1

    def _send(self, place: int, now: int, event: Any) -> None:
        self._message("send", place, event, event.receiver)

    def _receive(self, place: int, now: int, event: Any) -> None:
        self._message("receive", place, event, event.sender)

    def _collective(self, place: int, now: int, event: Any) -> None:
        self._append("collective", place, self._innermost(place), self.comms[event.communicator])

    def _team_begin(self, place: int, now: int, event: Any) -> None:
        team = self.comms.get(event.thread_team, -1)
        instance = self._instances.get((place, team), 0)
        self._instances[place, team] = instance + 1
        self._team[place].append((team, instance))
        forked, self._forked[place] = self._forked[place], -1
        self._append("team", place, team, instance, now if forked < 0 else forked, int(forked >= 0))

    def _fork(self, place: int, now: int, event: Any) -> None:
        self._forked[place] = now

    def _team_end(self, place: int, now: int, event: Any) -> None:
        if self._team[place]:
            self._team[place].pop()

    def _acquire(self, place: int, now: int, event: Any) -> None:
        region = self._innermost(place)
        requested = self.tables["interval"]["start"][region] if region >= 0 else now
        if self._released.get((place, event.lock_id), -1) == region >= 0:
            requested = now  # it waited for something else, having released the lock: `pthread_cond_wait`
        self._append("lock", place, event.lock_id, event.acquisition_order, requested, now, 0)

    def _release(self, place: int, now: int, event: Any) -> None:
        self._released[place, event.lock_id] = self._innermost(place)
        self._append("lock", place, event.lock_id, event.acquisition_order, now, now, 1)

    def _append(self, table: str, *values: int) -> int:
        columns = self.tables[table]
        for column, value in zip(columns.values(), values, strict=True):
            column.append(value)
        return len(columns["location"]) - 1

    def _innermost(self, place: int) -> int:
        return self._open[place][-1] if self._open[place] else -1

    def _begin_copy(self, place: int, now: int, event: Any, to_host: int) -> None:
        row = self._append("copy", place, now, now, event.bytes, to_host)
        self._copies.setdefault((place, event.win, event.matching_id), []).append(row)

    def _message(self, table: str, place: int, event: Any, rank: int) -> None:
        comm = event.communicator
        members = list(comm.group.members) if hasattr(comm, "group") else []
        peer = self.locations.get(members[rank], -1) if rank < len(members) else -1
        self._append(table, place, self._innermost(place), peer, self.comms[comm], event.msg_tag)

    def _stream(self, event: Any) -> int:
        for attribute, value in (event.attributes or {}).items():
            if attribute.name in STREAM_ATTRIBUTES:
                return self.locations.get(value, -1)
        return -1


_HANDLERS: dict[str, Callable[[Collector, int, int, Any], None]] = {
    "Enter": Collector._enter,
    "Leave": Collector._leave,
    "RmaPut": Collector._put,
    "RmaGet": Collector._get,
    "RmaOpCompleteBlocking": Collector._complete,
    "RmaOpCompleteNonBlocking": Collector._complete,
    "MpiSend": Collector._send,
    "MpiIsend": Collector._send,
    "MpiRecv": Collector._receive,
    "MpiIrecv": Collector._receive,
    "MpiCollectiveEnd": Collector._collective,
    "ThreadFork": Collector._fork,
    "ThreadTeamBegin": Collector._team_begin,
    "ThreadTeamEnd": Collector._team_end,
    "ThreadAcquireLock": Collector._acquire,
    "ThreadReleaseLock": Collector._release,
    "OmpAcquireLock": Collector._acquire,
    "OmpReleaseLock": Collector._release,
}


def _word(value: Any) -> str:
    """Return the name of an enumeration's value: `str` gives `Paradigm.OPENMP`."""
    return str(value).rpartition(".")[2]


def collect(anchor: str, output: str) -> None:
    """Read an archive and write its columns, with names as JSON."""
    import otf2

    with otf2.reader.open(anchor) as trace:
        collector = Collector(trace)
        for location, event in trace.events:
            collector.add(location, event)
        collector.end()
        groups = list(trace.definitions.location_groups)
        names = {
            "groups": [str(group.name) for group in groups],
            "locations": [
                {
                    "name": str(one.name),
                    "gpu": "CPU" not in _word(one.type),
                    "group": groups.index(one.group),
                    "expected": int(one.number_of_events),
                    "read": collector.read[place],
                    "unmatched": collector.unmatched[place],
                }
                for one, place in collector.locations.items()
            ],
            "regions": [
                {
                    "name": demangle(str(one.name)),
                    "paradigm": _word(one.paradigm),
                    "role": _word(one.region_role),
                    "file": str(one.source_file or ""),
                    "line": int(one.begin_line_number or 0),
                }
                for one in collector.regions
            ],
        }
    columns = {
        f"{table}.{name}": np.array(column, np.int64)
        for table, named in collector.tables.items()
        for name, column in named.items()
    }
    columns[NAMES] = np.frombuffer(json.dumps(names).encode(), np.uint8).astype(np.int64)
    np.savez(output, allow_pickle=False, **columns)


if __name__ == "__main__":
    collect(sys.argv[1], sys.argv[2])
