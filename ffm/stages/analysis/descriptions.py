"""What the stages found at each call stack: its function, bytes, verdicts, and what becomes of its downloads."""

from __future__ import annotations

import dataclasses

import numpy as np
from numpy.typing import NDArray

from ffm.evidence.matching.alignment import translate
from ffm.evidence.operations import function_name
from ffm.evidence.transfers.downloads import DOWNLOADS, download_uses
from ffm.model.grouping import numbered, parts, sums_by
from ffm.model.necessity.reasons import Reason
from ffm.model.timeline import Timeline
from ffm.model.transfers import Repetition
from ffm.results.columnar.columns import Columns
from ffm.results.columnar.tables import stored_table
from ffm.results.documents.analysis import AllocationLink
from ffm.results.documents.measured import Memory, Tracing
from ffm.results.documents.site import Verdict
from ffm.results.folder.paths import ResultsFolder
from ffm.results.vocabulary import Because
from ffm.stages.analysis.findings import SiteDescription
from ffm.stages.analysis.joined import Joined
from ffm.symbols.buffer_names import BufferNames

VERDICTS = {
    Repetition.NO_OP: "no-op",
    Repetition.NO_OP_FROM_ELSEWHERE: "no-op",
    Repetition.REPEAT: "repeat",
    Repetition.REPEAT_UNSEEN: "repeat",
    Repetition.REPEAT_FROM_ELSEWHERE: "repeat",
    Repetition.COPY: "copy",
    Repetition.PARTIAL: "partial",
    Repetition.OUTSIDE_PORTION: "not judged",
}
"""Names of the verdicts on transfers; all others are `needed`."""

COUNTED_ROWS = 1 << 17
"""Rows whose verdicts are counted at once: so many that those with a verdict are numbered in linear time."""


def describe_sites(
    columns: Columns, joined: Joined, misplaced: NDArray[np.bool_], stacks: int, allocators: dict[int, str]
) -> list[SiteDescription]:
    """Describe each stack: its function, bytes and verdicts. A stack without operations gets an empty one."""
    function = np.full(stacks, -1, np.int64)
    function[columns["stack"]] = columns["function"]
    moved = sums_by(columns["stack"], stacks, columns["bytes"])
    synchronization: list[list[Verdict]] = [[] for _ in range(stacks)]
    transfer: list[list[Verdict]] = [[] for _ in range(stacks)]
    partly = bool(joined.left_out.any())
    for (reason, stack, keep, late), occurrences in _counts(joined.reason, columns["stack"], joined.keep, misplaced):
        verdict = _synchronization_verdict(Reason(reason), keep, occurrences, misplaced=bool(late), partly=partly)
        synchronization[stack].append(verdict)
    for (kind, stack, first), occurrences in _counts(joined.repetition, columns["stack"], joined.first):
        transfer[stack].append(
            Verdict(
                kind=VERDICTS[Repetition(kind)],
                because=Because[Repetition(kind).name],
                occurrences=occurrences,
                first=first if first >= 0 else None,
            )
        )
    return [
        SiteDescription(
            stack=stack,
            function=function_name(int(function[stack])) if function[stack] >= 0 else allocators.get(stack, ""),
            bytes=int(moved[stack]),
            synchronization=synchronization[stack],
            transfer=transfer[stack],
        )
        for stack in range(stacks)
    ]


def add_downloads(
    sites: list[SiteDescription], columns: Columns, tracing: Tracing, memory: Memory, folder: ResultsFolder
) -> None:
    """Add to the sites that download how much of it is touched, if stage 3 checked."""
    table = stored_table(memory, "downloads", DOWNLOADS, folder.root)
    table["stack"] = translate(table["stack"], memory.stacks, tracing.stacks)
    for site, use in download_uses(columns, table, memory.watch).items():
        sites[site] = dataclasses.replace(sites[site], download=use)


def name_buffers(
    sites: list[SiteDescription], links: list[AllocationLink], timeline: Timeline, names: BufferNames
) -> None:
    """Name the memory of the sites with problems, and of their allocations and frees."""
    wanted: set[int] = set(np.flatnonzero(np.bincount(timeline.site[timeline.problem != 0])).tolist())
    linked: set[int] = set()
    for link in links:
        if link.site in wanted:
            linked.update(site for site in (link.allocation, link.release) if site is not None)
    for site, name in names.names((site, sites[site].function) for site in wanted | linked).items():
        sites[site] = dataclasses.replace(sites[site], buffer=name)


def _synchronization_verdict(reason: Reason, keep: int, occurrences: int, *, misplaced: bool, partly: bool) -> Verdict:
    """Return the verdict on a reason; `partly` if not all waits were measured, which must then stay."""
    if partly and reason == Reason.NOTHING_RELIES:
        return Verdict(kind="conditionally unnecessary", because=Because.OTHERS_STAY, occurrences=occurrences)
    if reason in (Reason.NOTHING_RELIES, Reason.EVENT_NOT_RECORDED):
        kind = "unnecessary"
    elif reason == Reason.LATER_COVERS:
        kind = "conditionally unnecessary"
    elif reason == Reason.OUTSIDE_PORTION:
        kind = "not judged"
    else:
        kind = "misplaced" if misplaced else "required"
    return Verdict(kind=kind, because=Because[reason.name], occurrences=occurrences, keep=keep if keep >= 0 else None)


def _counts(
    code: NDArray[np.uint8], *others: NDArray[np.integer] | NDArray[np.bool_]
) -> list[tuple[tuple[int, ...], int]]:
    """Return the distinct rows of some columns whose `code` is not 0, with how often each occurs, most frequent first;
    of equally frequent ones, in their order.
    """
    counts: dict[tuple[int, ...], int] = {}
    for part in parts(len(code), COUNTED_ROWS):
        found = np.flatnonzero(code[part])
        columns = [column[part][found] for column in (code, *others)]
        number, first = numbered(*columns)
        distinct = zip(*(column[first].astype(np.int64).tolist() for column in columns), strict=True)
        for row, count in zip(distinct, np.bincount(number).tolist(), strict=True):
            counts[row] = counts.get(row, 0) + count
    return sorted(counts.items(), key=lambda item: (-item[1], item[0]))
