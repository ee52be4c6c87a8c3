"""Reads OTF2 archives, as Score-P writes them, with the library `otf2` (an extra of ffm).

The archive holds events of each thread and of each stream of a GPU: regions that are entered and left, MPI messages and
collectives, OpenMP teams. Only the stream that a launch names, and the order, tie a kernel to its launch; only
its direction ties a copy to its call.
"""

from __future__ import annotations

import importlib.util
import json
import subprocess
import sys
import tempfile
import zipfile
from dataclasses import dataclass
from pathlib import Path

import msgspec
import numpy as np
from numpy.typing import NDArray

from ffm.errors import DocumentError, FfmError
from ffm.results.documents.notes import AnyNote, LostEvents, PairedWork, UnpairedCalls
from ffm.sources.nesting import Spans, chains_of_calls
from ffm.sources.otf2_child import BARRIERS, COLUMNS, NAMES
from ffm.sources.partners import PartnerFinder, Partners, last_launches, messages, occurrences
from ffm.sources.profile import Calls, Chain, Place, Profile, Stream, Unlaunched, Waits, Work, outermost, plain_name

GPU_INTERFACES = frozenset(("CUDA", "OPENCL", "HIP"))
ARTIFICIAL = "ARTIFICIAL"
EVERYBODY = frozenset(("MPI_Init", "MPI_Init_thread", "MPI_Finalize"))
"""Collective operations of all ranks, of which no event names the communicator."""

TEAM = ("OpenMP team begins", "OpenMP fork")
"""Names of what a thread does, if it `forks` or not, when a team begins."""

LOCK = ("acquire lock", "release lock")
"""Names of what a thread does, if it `releases` a lock or not."""


class Location(msgspec.Struct):
    """A thread, or a stream of a GPU."""

    name: str
    gpu: bool
    group: int
    expected: int
    read: int
    unmatched: int


class Region(msgspec.Struct):
    """A function, or another region of code."""

    name: str
    paradigm: str
    role: str
    file: str
    line: int


class Names(msgspec.Struct):
    """What the columns of an archive refer to."""

    groups: list[str]
    locations: list[Location]
    regions: list[Region]


@dataclass(frozen=True, slots=True)
class Archive:
    """The content of an archive, as `ffm.sources.otf2_child` describes it."""

    names: Names
    tables: dict[str, dict[str, NDArray[np.int64]]]


def read_otf2(path: Path) -> Profile:
    """Read an archive.

    Raises:
        FfmError: The library `otf2` is not installed.
        DocumentError: The archive is missing, damaged, or contains no calls of a GPU's interface, MPI or OpenMP.
    """
    anchor = _anchor(path)
    if importlib.util.find_spec("otf2") is None:
        raise FfmError("Archives of OTF2 are read with the library `otf2`: install it with `pip install 'ffm[otf2]'`.")
    with tempfile.TemporaryDirectory(prefix="ffm-otf2-") as folder:
        return _Reader(anchor, read_archive(anchor, Path(folder) / "columns.npz")).profile()


def _anchor(path: Path) -> Path:
    if path.is_dir():
        found = sorted(path.glob("*.otf2"))
        if len(found) != 1:
            raise DocumentError(f"{path} contains {len(found)} files named `*.otf2`: name the one that Score-P wrote.")
        return found[0]
    if not path.is_file():
        raise DocumentError(f"{path} is missing: name the folder that Score-P wrote, or its `.otf2` file.")
    return path


def read_archive(anchor: Path, output: Path) -> Archive:
    """Read an archive in a process of its own, which a damaged one may end."""
    command = [sys.executable, "-P", "-m", "ffm.sources.otf2_child", str(anchor), str(output)]
    done = subprocess.run(command, capture_output=True, text=True, errors="replace", check=False)
    if done.returncode != 0 or not output.is_file():
        last = (done.stderr.strip().splitlines() or ["it ended without a message"])[-1]
        reason = last.rpartition("Error: ")[2] or last
        raise DocumentError(f"{anchor} cannot be read ({reason[:200]}): record it again, or copy its whole folder.")
    try:
        with np.load(output, allow_pickle=False) as columns:
            names = msgspec.json.decode(columns[NAMES].astype(np.uint8).tobytes(), type=Names)
            tables = {table: {name: columns[f"{table}.{name}"] for name in named} for table, named in COLUMNS.items()}
    except (OSError, ValueError, KeyError, zipfile.BadZipFile, json.JSONDecodeError, msgspec.DecodeError) as error:
        raise DocumentError(f"{anchor} cannot be read ({error}): record it again.") from None
    return Archive(names, tables)


class _Reader:
    """Turns an archive into a profile."""

    def __init__(self, anchor: Path, archive: Archive) -> None:
        self._anchor, self._names, self._tables = anchor, archive.names, archive.tables
        self._teams = len(self._tables["interval"]["start"])
        self._locks = self._teams + len(self._tables["team"]["time"])
        interval = self._tables["interval"] = self._with_threads()
        if (interval["end"] < interval["start"]).any():
            raise DocumentError(f"{anchor} has regions that end before they start: record it again.")
        self._region = interval["region"]
        self._gpu = np.array([one.gpu for one in self._names.locations] or [False])
        self._group = np.array([one.group for one in self._names.locations] or [0], np.int64)
        self._is_call = np.array([_is_call(one) for one in self._names.regions] or [False])
        self._is_span = np.array([one.role != ARTIFICIAL for one in self._names.regions] or [False]) & ~self._is_call
        self._text = {one.name: place for place, one in enumerate(self._names.regions)}

    def _with_threads(self) -> dict[str, NDArray[np.int64]]:
        """Return the intervals, one without length for each start of a team on each of its threads and for each release
        of a lock, and one for each acquisition.
        """
        interval, team, lock = (self._tables[name] for name in ("interval", "team", "lock"))
        own = len(self._names.regions)
        self._names.regions.extend(Region(name, "OPENMP", BARRIERS[0], "", 0) for name in (*TEAM, *LOCK))
        more = {
            "location": (team["location"], lock["location"]),
            "region": (own + team["forks"], own + len(TEAM) + lock["releases"]),
            "start": (team["time"], lock["requested"]),
            "end": (team["time"], lock["time"]),
            "stream": (np.full(len(team["time"]) + len(lock["time"]), -1),),
        }
        return {name: np.concatenate((interval[name], *more[name])) for name in interval}

    def profile(self) -> Profile:
        """Return what the archive holds."""
        interval, regions = self._tables["interval"], self._names.regions
        on_gpu = self._gpu[interval["location"]]
        rows = np.flatnonzero(~on_gpu & self._is_call[self._region])
        if not len(rows):
            raise DocumentError(
                f"{self._anchor} contains no calls of CUDA, OpenCL, MPI or OpenMP: record them with Score-P."
            )
        location, start, end = (interval[name][rows] for name in ("location", "start", "end"))
        process = self._group[location]
        chosen, holder = outermost(process, location, start, end)
        call_of = np.full(len(self._region), -1, np.int64)
        call_of[rows] = holder
        inner = np.flatnonzero(~on_gpu & self._is_span[self._region])
        spans = Spans(
            self._group[interval["location"][inner]],
            interval["location"][inner],
            interval["start"][inner],
            interval["end"][inner],
            self._region[inner],
        )
        chain, chains = chains_of_calls(spans, process[chosen], location[chosen], start[chosen])
        calls = Calls(process[chosen], location[chosen], start[chosen], end[chosen], self._region[rows][chosen], chain)
        work, unlaunched, notes = self._work(calls, call_of)
        asked = self._tables["interval"]["stream"]
        told = np.flatnonzero((asked >= 0) & (call_of >= 0) & ~self._launches()[self._region])
        return Profile(
            application=self._anchor.parent.name or self._anchor.stem,
            recorded_by="Score-P",
            names=[plain_name(one.name) for one in regions],
            calls=calls,
            work=work,
            waits=Waits(call_of[told], asked[told], np.full(len(told), -1), np.full(len(told), -1)),
            streams=[Stream(one.group, False) for one in self._names.locations],
            chains=[Chain(tuple(self._frame(number) for number in one)) for one in chains],
            unlaunched=unlaunched,
            partners=self._partners(calls, call_of),
            notes=[*self._lost(), *notes],
            lines=bool(chains),
        )

    def _frame(self, number: int) -> tuple[str, str, str, int]:
        region = self._names.regions[number]
        return region.name, "", region.file, region.line

    def _work(self, calls: Calls, call_of: NDArray[np.int64]) -> tuple[Work, Unlaunched, list[AnyNote]]:
        interval, copy = self._tables["interval"], self._tables["copy"]
        kernels = np.flatnonzero(self._gpu[interval["location"]] & self._is_kernel()[self._region])
        launches = np.flatnonzero((interval["stream"] >= 0) & (call_of >= 0) & self._launches()[self._region])
        call = np.full(len(kernels) + len(copy["start"]), -1, np.int64)
        lost = 0
        for stream in np.unique(interval["location"][kernels]).tolist():
            mine = np.flatnonzero(interval["location"][kernels] == stream)
            mine = mine[np.argsort(interval["start"][kernels[mine]], kind="stable")]
            own = launches[interval["stream"][launches] == stream]
            own = own[np.argsort(interval["start"][own], kind="stable")]
            found = last_launches(interval["start"][own], interval["start"][kernels[mine]])
            call[mine[found >= 0]] = call_of[own[found[found >= 0]]]
            lost += max(len(own) - len(mine), 0)
        copies = np.arange(len(copy["start"])) + len(kernels)
        to_host = copy["to_host"] > 0
        ways = self._ways()[calls.name]
        for group in np.unique(self._group[copy["location"]]).tolist():
            for way in (0, 1):
                mine = np.flatnonzero((self._group[copy["location"]] == group) & (copy["to_host"] == way))
                mine = mine[np.argsort(copy["start"][mine], kind="stable")]
                own = np.flatnonzero((calls.process == group) & (ways == way))
                own = own[np.argsort(calls.start[own], kind="stable")]
                found = last_launches(calls.start[own], copy["start"][mine])
                call[copies[mine[found >= 0]]] = own[found[found >= 0]]
                lost += max(len(own) - len(mine), 0)
        location = np.concatenate((interval["location"][kernels], copy["location"]))
        start, end = (np.concatenate((interval[name][kernels], copy[name])) for name in ("start", "end"))
        nowhere = np.full(len(kernels), Place.UNKNOWN, np.uint8)
        known, rest = np.flatnonzero(call >= 0), np.flatnonzero(call < 0)
        work = Work(
            call=call[known],
            start=start[known],
            end=end[known],
            stream=location[known],
            name=np.concatenate((self._region[kernels], np.full(len(to_host), -1)))[known],
            bytes=np.concatenate((np.zeros(len(kernels), np.int64), copy["bytes"].clip(0)))[known],
            source=np.concatenate((nowhere, np.where(to_host, Place.DEVICE, Place.PINNED))).astype(np.uint8)[known],
            destination=np.concatenate((nowhere, np.where(to_host, Place.PINNED, Place.DEVICE))).astype(np.uint8)[
                known
            ],
        )
        notes: list[AnyNote] = [PairedWork()]
        if lost:
            notes.append(UnpairedCalls(calls=lost))
        return work, Unlaunched(self._group[location[rest]], location[rest], end[rest]), notes if len(call) else []

    def _is_kernel(self) -> NDArray[np.bool_]:
        return np.array([one.role != ARTIFICIAL for one in self._names.regions] or [False])

    def _launches(self) -> NDArray[np.bool_]:
        return np.array(["Launch" in one.name or "NDRange" in one.name for one in self._names.regions] or [False])

    def _ways(self) -> NDArray[np.int64]:
        """Return, for each region, whether it copies to the host, 1, or to the device, 0; -1 if neither."""
        to_host, to_device = ("DtoH", "EnqueueRead"), ("HtoD", "EnqueueWrite")
        found = [
            1 if any(word in one.name for word in to_host) else 0 if any(word in one.name for word in to_device) else -1
            for one in self._names.regions
        ]
        return np.array(found or [-1], np.int64)

    def _partners(self, calls: Calls, call_of: NDArray[np.int64]) -> Partners:
        finder = PartnerFinder(calls.start, calls.end)
        collective, barrier = self._tables["collective"], self._tables["barrier"]
        self._meet(finder, call_of, collective["interval"], collective["location"], collective["comm"])
        everybody = np.array([one.name in EVERYBODY for one in self._names.regions] or [False])
        whole = np.flatnonzero(everybody[calls.name])
        finder.meet(calls.name[whole], whole)
        self._meet(finder, call_of, barrier["interval"], None, barrier["team"], barrier["instance"])
        team = self._tables["team"]
        if len(team["team"]):
            _, number = np.unique(np.column_stack((team["team"], team["instance"])), axis=0, return_inverse=True)
            call = call_of[self._teams : self._locks]
            forks = (team["forks"] > 0) & (call >= 0)
            finder.follow(number.reshape(-1), call, forks)
        send, receive = self._tables["send"], self._tables["receive"]
        if len(send["location"]) and len(receive["location"]):
            first, second = messages(
                [send["location"], send["peer"], send["comm"], send["tag"]],
                [receive["peer"], receive["location"], receive["comm"], receive["tag"]],
            )
            sent, received = (
                _calls(call_of, table["interval"][chosen]) for table, chosen in ((send, first), (receive, second))
            )
            both = (sent >= 0) & (received >= 0)
            finder.exchange(sent[both], received[both])
        lock = self._tables["lock"]
        call = call_of[self._locks :]
        # Within a call of MPI, it is that call which waits.
        apart = calls.name[call.clip(0)] >= len(self._names.regions) - len(LOCK)
        own = np.flatnonzero((call >= 0) & apart)
        key = np.column_stack((self._group[lock["location"]], lock["lock"], lock["order"]))
        finder.locks(key[own], call[own], lock["releases"][own] > 0)
        return finder.found()

    def _meet(
        self,
        finder: PartnerFinder,
        call_of: NDArray[np.int64],
        interval: NDArray[np.int64],
        location: NDArray[np.int64] | None,
        *group: NDArray[np.int64],
    ) -> None:
        """Let calls meet that agree in the columns of `group`. With `location`, each location's n-th call with the same
        columns meets the n-th calls of the others.
        """
        if not len(interval):
            return
        columns = list(group)
        if location is not None:
            _, of_location = np.unique(np.column_stack((location, *group)), axis=0, return_inverse=True)
            columns.append(occurrences(of_location.reshape(-1)))
        _, number = np.unique(np.column_stack(columns), axis=0, return_inverse=True)
        call = _calls(call_of, interval)
        finder.meet(number.reshape(-1)[call >= 0], call[call >= 0])

    def _lost(self) -> list[AnyNote]:
        """Return how many events are missing, if any are."""
        lost = sum(max(one.expected - one.read, 0) + one.unmatched for one in self._names.locations)
        return [LostEvents(events=lost)] if lost else []


def _calls(call_of: NDArray[np.int64], interval: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return the calls of intervals; -1 where there is none."""
    return np.where(interval >= 0, call_of[interval.clip(0)], -1)


def _is_call(region: Region) -> bool:
    """Return whether a region is a call that may wait: of a GPU's interface, of MPI, or a barrier of OpenMP."""
    if region.role == ARTIFICIAL:
        return False
    return (
        region.paradigm in GPU_INTERFACES
        or region.paradigm == "MPI"
        or (region.paradigm == "OPENMP" and region.role in BARRIERS)
    )
