"""Reads what the published Diogenes wrote about a program, so that ffm's viewing commands can show it.

Diogenes's own viewer no longer runs. A folder contains `combined_stacks.json`, with one record per distinct call stack
and totals over the run, and `ttime.txt`, the run's seconds. The trace itself was not kept. Sorted by `tf_id`, the
records are in program order of first occurrence, which serves as the timeline, with one row per stack.

What Diogenes printed from these records follows the rules below, found in its results and published scripts
(github.com/bwelton/diogenes, `src/analysis`). They are reproduced with their oddities, so that the numbers are
comparable:

- A record without occurrences belongs to no traced operation. The first record is the creation of the context.
- *Folds* sum, over their stacks, `min(mean wait, mean gap) * count` and the operation time of what can be removed. The
  needed occurrences are subtracted from the first part only if a record's number says that it depends on itself. None
  of the published records does, although two of them are needed; so a fold counts their waits too.
- *Single points* are listed by the address of the CUDA call, over all its callers. For stacks with duplicate transfers
  they count only the first part.
- *Sequences* follow the trace through stacks whose data nothing used. For each traced operation, the script takes the
  record *after* its own, because it uses a number that starts at 1 as an index. So a sequence misses the first
  operation of each loop and the one that follows a needed synchronization: in cumf_als the copy at line 737 and the
  free at line 1022. It also counts a last operation without a number if the stack has no CUDA call. What was used ends
  a sequence, even if its transfer repeats.

For cumf_als these rules give everything that was printed; for cuIBM all four folds, and the 18 sequences to the
millisecond (`diogenes_sequences.py`). The totals of one of these, 150.353 s, leave open how often two of its records
count. The number follows from Diogenes's own list, `sequential_pproc.json`, if that is in the folder: with 48,400 the
records give the listed seconds to 1e-9; one more or less would change them by 4e-5. Without the list, the number is
estimated, and the sequence gets 150.002 s; another one of 8.53 s then replaces that of 8.268 s, which it contains.
"""

from __future__ import annotations

import hashlib
import math
from collections import Counter
from operator import mul
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from ffm.model.groups.sequences import FoundSequence, Line, Membership, offsets_of
from ffm.model.timeline import Kind, Problem, Timeline
from ffm.results.call_sites import place_of_call
from ffm.results.documents.analysis import Analysis
from ffm.results.documents.notes import DiogenesSequences, TotalsOnly
from ffm.results.documents.site import Verdict
from ffm.results.documents.stacks import Frame, Module, Stack
from ffm.results.folder.identity import forget_runs
from ffm.results.folder.lock import writing_to
from ffm.results.folder.paths import ResultsFolder
from ffm.results.vocabulary import Because
from ffm.sources.diogenes_records import (
    Record,
    RecordedFrame,
    read_listed,
    read_records,
    read_wall_time,
)
from ffm.sources.diogenes_sequences import Counted, find_counted
from ffm.stages.analysis.findings import Findings, SiteDescription
from ffm.stages.analysis.results import write_results

FIRST_RECORD = 1
"""`GlobalID` of the record that Diogenes omits from every screen: the creation of the context."""


def import_diogenes(folder: Path, results_folder: Path) -> Analysis:
    """Convert a folder of Diogenes's files to results that every viewing command reads.

    Raises:
        DocumentError: A file is missing, truncated or has an unexpected shape; one sentence names it.
    """
    found = findings(read_records(folder), read_wall_time(folder), folder, read_listed(folder))
    ResultsFolder(results_folder).make()
    with writing_to(results_folder, "ffm import diogenes"):
        forget_runs(results_folder)
        return write_results(found, results_folder)


def findings(records: list[Record], wall_s: float, folder: Path, listed: list[float] | None = None) -> Findings:
    """Arrange the records as a timeline with its sites; site i is record i.

    Args:
        listed: seconds of the sequences that Diogenes listed, if known.
    """
    modules, stacks = _stacks(records)
    sites = [SiteDescription(site, "", 0, *_verdicts(records, site)) for site in range(len(records))]
    counted = _counted(records, stacks, listed)
    timeline, inside = _timeline(records, stacks, counted)
    return Findings(
        application=folder.resolve().name,
        command=[],
        wall_s=wall_s,
        timeline=timeline,
        sites=sites,
        stacks=stacks,
        modules=modules,
        origin="diogenes",
        notes=[TotalsOnly(), DiogenesSequences()],
        sequences=_sequences(counted, timeline, inside),
        bound_s=published_folds(records),
    )


def published_folds(records: list[Record]) -> NDArray[np.float64]:
    """Return the seconds that Diogenes counts for each record in its folds, in the order of the records."""
    saved: NDArray[np.float64] = np.minimum(_waits(records) + _removed_calls(records), _totals(records))
    return saved


def _totals(records: list[Record]) -> NDArray[np.float64]:
    return np.array([record.total if record.number != FIRST_RECORD else 0.0 for record in records])


def _waits(records: list[Record]) -> NDArray[np.float64]:
    """Return `min(mean wait, mean gap)` times the occurrences; without a gap (the run's last operation), the wait
    counts.
    """

    def saved(record: Record) -> float:
        wait = record.wait / record.waits if record.waits else 0.0
        gap = record.gap / record.gaps if record.gaps else wait
        depends_on_itself = record.number in record.dependencies
        return min(wait, gap) * (record.count - (record.uses if depends_on_itself else 0))

    return np.array([saved(record) for record in records])


def _removed_calls(records: list[Record]) -> NDArray[np.float64]:
    """Return the mean operation time times the calls that can be removed: duplicate transfers, or else the unneeded
    occurrences.
    """

    def saved(record: Record) -> float:
        own = max(record.total / record.count - (record.wait / record.waits if record.waits else 0.0), 0.0)
        if record.duplicates:
            return own * record.duplicates if record.transfers else 0.0
        return own * (record.count - (0 if record.number in record.dependencies else record.uses))

    return np.array([saved(record) for record in records])


def _outermost_first(record: Record) -> list[RecordedFrame]:
    return sorted(record.stack, key=lambda frame: frame.position)


def _stacks(records: list[Record]) -> tuple[list[Module], list[Stack]]:
    modules: dict[str, int] = {}
    stacks = []
    for record in records:
        frames = [
            Frame(
                module=modules.setdefault(frame.libname, len(modules)),
                offset=frame.liboffset,
                function=frame.funcname,
                file=frame.filename if frame.linenum else "",
                line=frame.linenum,
            )
            for frame in reversed(_outermost_first(record))
        ]
        places = " ".join(f"{frame.md5sum or frame.libname}@{frame.liboffset}" for frame in record.stack)
        stacks.append(Stack(key=hashlib.blake2b(places.encode(), digest_size=16).hexdigest(), frames=frames))
    return [Module(path=path, build_id="") for path in modules], stacks


def _kind(record: Record, call: str) -> Kind:
    if record.transfers or "memcpy" in call.lower() or "memset" in call.lower():
        return Kind.TRANSFER
    for mark, kind in (
        ("Synchronize", Kind.SYNCHRONIZATION),
        ("Free", Kind.FREE),
        ("Alloc", Kind.ALLOCATION),
    ):
        if mark in call:
            return kind
    return Kind.OTHER


def _problem(record: Record, kind: Kind) -> Problem:
    if record.number == FIRST_RECORD or kind == Kind.ALLOCATION or record.uses:
        return Problem.NONE
    return Problem.UNNECESSARY_SYNCHRONIZATION


def _timeline(records: list[Record], stacks: list[Stack], counted: list[Counted]) -> tuple[Timeline, NDArray[np.bool_]]:
    """Return one row per record, or two if only some of its transfers repeat; the ones that do not come first. Each is
    divided if only some of the executions are part of a sequence, which come first. Also return which rows are that.
    """
    within = {site: times for one in counted for site, times in zip(one.sites, one.times, strict=True)}
    rows: list[tuple[int, ...]] = []
    for site, (record, stack) in enumerate(zip(records, stacks, strict=True)):
        kind = _kind(record, place_of_call(stack.frames, "").call)
        problem = _problem(record, kind)
        total = round(record.total * 1e9)
        columns = (total, min(round(record.wait * 1e9), total), round(record.gap * 1e9))
        first = record.count - min(record.duplicates, record.count)
        once, again = _divided(columns, first, record.count)
        for part, occurrences, flags in (
            (once, first, problem),
            (again, record.count - first, problem | Problem.UNNECESSARY_TRANSFER),
        ):
            times = within.get(site, 0) * occurrences // record.count
            for some, number, member in zip(
                _divided(part, times, occurrences), (times, occurrences - times), (1, 0), strict=True
            ):
                if number:
                    rows.append((*some, site, kind, flags, number, member))
    duration, wait, gap, sites, kinds, problems, numbers, inside = np.array(rows, np.int64).T
    ends = np.cumsum(duration + gap)
    timeline = Timeline(
        thread=np.zeros(len(rows), np.int32),
        start=ends - duration - gap,
        duration=duration,
        wait=wait,
        gap=gap,
        site=sites.astype(np.int32),
        kind=kinds.astype(np.uint8),
        problem=problems.astype(np.uint8),
        first_use=np.zeros(len(rows), np.int64),
        occurrences=numbers,
    )
    return timeline, inside.astype(np.bool_)


def _divided(columns: tuple[int, ...], first: int, of: int) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """Return the parts of times that belong to the first of a number of executions, and to the rest."""
    if not of:
        return columns, columns
    begin = tuple(value * first // of for value in columns)
    return begin, tuple(value - done for value, done in zip(columns, begin, strict=True))


def _verdicts(records: list[Record], index: int) -> tuple[list[Verdict], list[Verdict]]:
    """Return Diogenes's findings about one record's synchronizations and transfers."""
    record = records[index]
    sites = {other.number: site for site, other in enumerate(records) if other.number != FIRST_RECORD}
    synchronization, transfer = [], []
    if record.uses:
        synchronization.append(Verdict(kind="required", because=Because.DATA_USED, occurrences=record.uses))
    elif record.number != FIRST_RECORD:
        # Dependencies count records from 0, numbers count from 1.
        others = [sites[place + 1] for place in record.dependencies if sites.get(place + 1, index) != index]
        kind = "conditionally unnecessary" if others else "unnecessary"
        keep = others[-1] if others else None
        synchronization.append(Verdict(kind=kind, because=Because.DATA_NOT_USED, occurrences=record.count, keep=keep))
    if record.duplicates:
        origin = Counter(record.collisions).most_common(1)
        first = sites.get(origin[0][0]) if origin else None
        transfer.append(Verdict(kind="repeat", because=Because.EQUAL_HASH, occurrences=record.duplicates, first=first))
    if record.transfers > record.duplicates:
        needed = record.transfers - record.duplicates
        transfer.append(Verdict(kind="needed", because=Because.NEW_HASH, occurrences=needed))
    return synchronization, transfer


def _counted(records: list[Record], stacks: list[Stack], listed: list[float] | None) -> list[Counted]:
    """Return the sequences that Diogenes's script follows: record i where the trace has record i - 1."""
    problems = [
        _problem(record, _kind(record, place_of_call(stack.frames, "").call))
        for record, stack in zip(records, stacks, strict=True)
    ]
    counts = [0 if record.number == FIRST_RECORD else record.count for record in records]
    repeats = [record.duplicates > 0 for record in records]
    total = [record.total / record.count for record in records]
    gap = [record.gap / record.gaps if record.gaps else 0.0 for record in records]

    def seconds(sites: list[int], times: list[int]) -> float:
        return min(math.fsum(map(mul, times, [mean[site] for site in sites])) for mean in (total, gap))

    return find_counted(
        counts, lambda site: records[site].uses > 0 or not (problems[site] or repeats[site]), seconds, listed
    )


def _sequences(
    counted: list[Counted], timeline: Timeline, inside: NDArray[np.bool_]
) -> tuple[list[FoundSequence], Membership]:
    """Return sequences as the views need them; `inside` is which rows are part of them."""
    sites = int(timeline.site.max(initial=-1)) + 1
    problem = np.zeros(sites, np.uint8)
    np.bitwise_or.at(problem, timeline.site, timeline.problem)
    line_of = np.full(sites, -1, np.int32)
    line_of[[site for sequence in counted for site in sequence.sites]] = np.arange(
        sum(len(one.sites) for one in counted)
    )
    found = [
        FoundSequence(
            [Line(site, times, Problem(int(problem[site]))) for site, times in zip(one.sites, one.times, strict=True)],
            one.times[0],
            one.ends_at,
        )
        for one in counted
    ]
    lines = np.where(inside, line_of[timeline.site], -1).astype(np.int32)
    return found, Membership(lines, offsets_of([len(sequence.lines) for sequence in found]))
