"""Which waits of a traced run belong to a Python test function, by place and thread."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from ffm.gate.problems import call_site
from ffm.gate.rules import Rules
from ffm.results.places import place
from ffm.results.presumed import waiting_calls
from ffm.results.stored import Results


@dataclass(frozen=True, slots=True)
class Waits:
    """The waits at one place on one thread."""

    thread: int
    """From 1, as screens count."""
    place: str
    """The test's own line that leads to the call, `test_solver.py:57`."""
    call: str
    count: int


def waits_of_test(results: Results, file: Path, function: str, rules: Rules) -> list[Waits]:
    """Return the waits of a test function, without those of sites that the rules allow; by thread, then most first.

    On the test's own thread, a call is the test's if the function is on its stack. Other threads have no such frame: of
    theirs, all calls count since the first that the test made, or all if it made none itself.

    Raises:
        DocumentError: The timeline next to the document cannot be read.
    """
    timeline, analysis = results.timeline, results.document
    within = np.array(
        [
            any(
                frame.python and Path(frame.file).name == file.name and frame.function.split(".")[-1] == function
                for frame in analysis.stacks[site.stack].frames
            )
            for site in analysis.sites
        ],
        bool,
    )
    own = within[timeline.site]
    main = np.isin(timeline.thread, timeline.thread[own])
    begins = int(timeline.start[own].min()) if own.any() else 0
    return _by_place(results, own | (~main & (timeline.start >= begins)), rules)


def waits_within(results: Results, starts: NDArray[np.int64], begin: int, end: int, rules: Rules) -> list[Waits]:
    """Return the waits, on all threads, that begin within a block of a test; otherwise as `waits_of_test`.

    Args:
        results: of the traced test.
        starts: when the calls began, in the timeline's order, in nanoseconds of `CLOCK_MONOTONIC`, as `begin` and
            `end`. Those of the timeline itself are corrected for what the tracing costs.
        begin: of the block.
        end: of the block.
        rules: what is allowed.

    Raises:
        DocumentError: The timeline next to the document cannot be read.
    """
    return _by_place(results, (starts >= begin) & (starts <= end), rules)


def _by_place(results: Results, among: NDArray[np.bool_], rules: Rules) -> list[Waits]:
    timeline, analysis = results.timeline, results.document
    counted = waiting_calls(timeline, results.work, analysis.staged) & among
    pairs, counts = np.unique(np.column_stack((timeline.thread, timeline.site))[counted], axis=0, return_counts=True)
    found = []
    for (thread, index), count in zip(pairs.tolist(), counts.tolist(), strict=True):
        site = call_site(analysis, index)
        if any(entry.matches(site) for entry in rules.allow):
            continue
        named, line = site.places[0]
        where = f"{named}:{line}" if named and line else place(analysis, index).place
        found.append(Waits(thread + 1, where, analysis.sites[index].call, count))
    return sorted(found, key=lambda waits: (waits.thread, -waits.count, waits.place))


def too_many(found: list[Waits], most: int, where: str = "") -> str:
    """Return what is wrong if a thread waits more than `most` times: a line for each place; otherwise nothing.

    `where` names the block that is meant, if it is not the whole test.
    """
    within = f" within {where}" if where else ""
    threads = sorted({waits.thread for waits in found})
    lines = []
    for thread in threads:
        mine = [waits for waits in found if waits.thread == thread]
        total = sum(waits.count for waits in mine)
        if total > most:
            lines.append(f"thread {thread} waits for the GPU {total:,} times{within}, and {most:,} are allowed:")
            lines += [f"  {waits.place}: {waits.call}, {waits.count:,}x" for waits in mine]
    return "\n".join(lines)
