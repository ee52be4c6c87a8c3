"""What `ffm path` says about a run, as a record that stage 5 writes into its document."""

from __future__ import annotations

import math

import msgspec

from ffm.model.device import DeviceWork
from ffm.model.estimators.faster import Faster
from ffm.model.gpu_times.timelines import Inference
from ffm.model.waiting.patterns import GpuUse, Pattern, find_patterns
from ffm.results.documents.analysis import Analysis
from ffm.results.documents.waiting import GuessedWork, Occurring, Region, UsedGpu, Waiting
from ffm.results.estimates import Estimates
from ffm.results.waiting.cells import NANOSECONDS
from ffm.results.waiting.regions import Regions, find_regions
from ffm.results.waiting.run_path import RunPath

TENTH = 1 / 0.9
"""The factor of what is 10 % faster."""

TRIED_ROWS = 6_000_000
"""At most this many rows are replayed for what faster regions would save, largest time on the path first."""

TRIED_REGIONS = 20
"""At most this many regions are replayed."""


def summarize(analysis: Analysis, run: RunPath, estimates: Estimates | None = None) -> Waiting:
    """Return what a run waited for and, with `estimates`, what its first regions would save if they were faster."""
    found = find_regions(analysis, run)
    regions = found.regions
    if estimates is not None:
        tried = min(TRIED_REGIONS, TRIED_ROWS // (2 * max(len(run.timeline), 1)), len(regions))
        regions = [_tried(estimates, run, found, number) for number in range(tried)] + regions[tried:]
    unaccounted_ns = run.stretches.length - sum(region.path_s for region in regions) * NANOSECONDS
    del found  # its columns are as large as those that finding patterns takes
    patterns = find_patterns(run.timeline, run.work, run.graph, run.meetings)
    return Waiting(
        regions=regions,
        early=_occurring(patterns.early),
        early_on_kernels_s=patterns.early_on_kernels / NANOSECONDS,
        late=_occurring(patterns.late),
        late_transfer=_occurring(patterns.late_transfer),
        launch_delay=_occurring(patterns.launch_delay),
        late_sender=_occurring(patterns.late_sender),
        late_receiver=_occurring(patterns.late_receiver),
        collective=_occurring(patterns.collective),
        barrier=_occurring(patterns.barrier),
        imbalance=_occurring(patterns.imbalance),
        locks=_occurring(patterns.locks),
        polling=_occurring(patterns.polling),
        offload=_occurring(patterns.offload),
        consecutive=_occurring(patterns.consecutive),
        gpu=[_used(use) for use in patterns.gpu],
        waits_recorded=run.work.awaits is not None,
        starts_recorded=run.work.lives is not None,
        locks_recorded=run.work.locks is not None,
        processes=run.work.processes,
        threads=len(run.work.process_of_thread),
        unaccounted_s=max(round(unaccounted_ns), 0) / NANOSECONDS,
    )


def guessed_work(work: DeviceWork, inference: Inference) -> GuessedWork | None:
    """Return the GPU's work of which nothing shows how long it takes; None if a profiler recorded its times."""
    guessed = inference.guessed
    if guessed is None or work.began is not None:
        return None
    return GuessedWork(
        count=guessed.count,
        least_s=guessed.least / NANOSECONDS,
        likely_s=guessed.likely / NANOSECONDS,
        most_s=None if guessed.most is None else guessed.most / NANOSECONDS,
    )


def _occurring(pattern: Pattern) -> Occurring:
    return Occurring(count=pattern.count, seconds=pattern.lasting / NANOSECONDS)


def _used(use: GpuUse) -> UsedGpu:
    return UsedGpu(
        process=use.process,
        device=use.device,
        lasting_s=use.lasting / NANOSECONDS,
        idle_s=use.idle / NANOSECONDS,
        compute_idle_s=use.compute_idle / NANOSECONDS,
        unhidden_s=use.unhidden / NANOSECONDS,
        copy_overlap_s=use.copy_overlap / NANOSECONDS,
    )


def _tried(estimates: Estimates, run: RunPath, found: Regions, number: int) -> Region:
    """Return a region with what it would save if it were 10 % faster, and gone."""
    saved = []
    for factor in (TENTH, math.inf):
        faster = found.faster([number], factor, run)
        likely_s = estimates.likely_change(faster)
        assert likely_s is not None, "there is a path"
        on_path_s = found.less_on_path_s([number], factor)
        saved.append(within_bounds(run.work, likely_s, faster, on_path_s))
    return msgspec.structs.replace(found.regions[number], tenth_s=saved[0], gone_s=saved[1])


def within_bounds(work: DeviceWork, likely_s: float, faster: Faster, on_path_s: float) -> float:
    """Return what a change saves, by what the replay says and what it does not know.

    As long as no call, and no work of the GPU, is gone with its wait, a change saves no more than it takes away from
    the path: that is still as long as the rest of it. Of several threads it is not known well enough who waits for whom
    to say so, unless a profiler told.
    """
    known = len(work.process_of_thread) == 1 or work.encounters is not None
    if known and not faster.gone.any() and (faster.gpu > 0).all():
        return min(likely_s, on_path_s)
    return likely_s
