"""Call sites as the analysis document describes them."""

from __future__ import annotations

import msgspec
import numpy as np
from numpy.typing import NDArray

from ffm.evidence.transfers.host_memory import ALLOCATORS, FREE
from ffm.model.estimators.bound import Totals
from ffm.model.timeline import Kind, Timeline
from ffm.results.call_sites import CallPlace, place_of_allocation, place_of_call, runtime_modules
from ffm.results.documents.benefit import Benefit
from ffm.results.documents.site import DownloadUse, Site
from ffm.stages.analysis.findings import Findings

HOST_FUNCTIONS = frozenset((*ALLOCATORS, FREE))


def places_of_sites(findings: Findings) -> list[CallPlace]:
    """Return where in the program each site is."""
    runtime = runtime_modules(findings.modules)
    return [
        place_of_allocation(findings.stacks[site.stack].frames, site.function)
        if site.function in HOST_FUNCTIONS
        else place_of_call(findings.stacks[site.stack].frames, site.function, runtime)
        for site in findings.sites
    ]


def described_sites(
    findings: Findings,
    places: list[CallPlace],
    sums: Totals,
    benefits: list[Benefit],
    copy_time: NDArray[np.int64],
    before_pinning: dict[int, Benefit],
) -> list[Site]:
    """Return all sites with their times, verdicts and benefits; `copy_time` is nanoseconds a call, by site."""
    alone = _threads_of_problems(findings.timeline, len(findings.sites))
    return [
        Site(
            call=place.call,
            function=description.function,
            caller=place.caller,
            file=place.file,
            line=place.line,
            buffer=description.buffer,
            download=_with_saving(
                description.download,
                int(sums.count[index]) * int(copy_time[index]) / 1e9,
                float(sums.total[index]),
                float(sums.wait[index]),
            ),
            stack=description.stack,
            kind=Kind(int(sums.kind[index])).name.lower(),
            count=int(sums.count[index]),
            total_s=float(sums.total[index]),
            wait_s=float(sums.wait[index]),
            gap_s=float(sums.gap[index]),
            bytes=description.bytes,
            copy_ns=int(copy_time[index]),
            problem_count=int(sums.problems[index]),
            problem_thread=alone.get(index),
            synchronization=description.synchronization,
            transfer=description.transfer,
            benefit=benefits[index],
            before_pinning_s=before_pinning[index].expected_s if index in before_pinning else None,
            kernels=findings.kernels.get(index, []),
        )
        for index, (description, place) in enumerate(zip(findings.sites, places, strict=True))
    ]


def _threads_of_problems(timeline: Timeline, sites: int) -> dict[int, int]:
    """Return the thread of each site that has problems on one thread alone."""
    rows = np.flatnonzero(timeline.problem)
    first, last = np.full((2, sites), -1, np.int32)
    last[timeline.site[rows]] = timeline.thread[rows]  # of equal sites, the last assignment stays
    first[timeline.site[rows[::-1]]] = timeline.thread[rows[::-1]]
    alone = np.flatnonzero((first >= 0) & (first == last))  # rows are sorted by thread
    return dict(zip(alone.tolist(), first[alone].tolist(), strict=True))


def _with_saving(use: DownloadUse | None, copy_s: float, total_s: float, wait_s: float) -> DownloadUse | None:
    """Add what downloading only the touched part would save; `copy_s` is the time that all the site's copies take.

    If the memory is pageable, the CPU's time in the calls besides waiting is copying too: it fetches the bytes from the
    driver's pinned buffers (CUDA Driver API, "API synchronization behavior").
    """
    if use is None or use.bytes == 0:
        return use
    untouched = 1 - use.touched_bytes / use.bytes
    saving = min(untouched * copy_s, wait_s) + untouched * max(total_s - wait_s, 0.0)
    return msgspec.structs.replace(use, saving_s=saving)
