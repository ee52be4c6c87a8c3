"""Stage 5's document, computed from the findings of the earlier stages."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from pathlib import Path

import msgspec
import numpy as np
from numpy.typing import NDArray

from ffm.model.copies import copy_times
from ffm.model.device import DeviceWork
from ffm.model.estimators.bound import bound_by_stack, totals
from ffm.model.estimators.replay import Elsewhere
from ffm.model.gpu_times.inference import infer_gpu_times
from ffm.model.gpu_times.timelines import Inference
from ffm.model.groups.sequences import Membership
from ffm.model.timeline import Kind, Timeline
from ffm.model.waiting.agreement import Moves, OnPath, agreement
from ffm.model.waiting.graph import Threads
from ffm.results.columnar.gpu_times_file import GPU_TIMES_FILE, save_gpu_times
from ffm.results.columnar.timeline_file import save_timeline
from ffm.results.documents.analysis import UNPROVED, Analysis, Explained
from ffm.results.documents.files import write_document
from ffm.results.documents.notes import AnyNote, SeveralProcesses
from ffm.results.documents.waiting import GuessedWork
from ffm.results.estimates import Estimates
from ffm.results.memory.spilling import Spilling
from ffm.results.stored import ANALYSIS_FILE, TIMELINE_FILE
from ffm.results.variation import Variation
from ffm.results.waiting.run_path import RunPath, doubtful_moves, likely_path
from ffm.results.waiting.summary import guessed_work, summarize
from ffm.stages.analysis.findings import Findings
from ffm.stages.analysis.groups import everything_of, folds_of, points_of, sequences_of, without_equal_bytes
from ffm.stages.analysis.kept_waits import fetching_waits, sending_waits, timing_waits, unproved_waits, waits_kept
from ffm.stages.analysis.sequence_parts import with_parts
from ffm.stages.analysis.sites import described_sites, places_of_sites
from ffm.steps import Tell, silently
from ffm.whole_file import whole_files

LONGEST_TRIED = 1_000_000
"""In a run with more operations, faster regions are not replayed, so that less memory is needed."""


def write_results(
    findings: Findings,
    folder: Path,
    *,
    own: bool = False,
    elsewhere: Elsewhere | None = None,
    spilling: Spilling | None = None,
    tell: Tell = silently,
) -> Analysis:
    """Analyse, and write the document and its tables into a folder, which is created if necessary.

    `own` is whether this user measured them; `elsewhere`, `spilling` and `tell` are as for `Estimates`. Until all are
    written, the folder keeps those of an earlier analysis. If the caller keeps no findings, the columns of a long run
    are freed as soon as they are not needed.
    """
    folder.mkdir(parents=True, exist_ok=True)
    with whole_files(folder, GPU_TIMES_FILE, TIMELINE_FILE, ANALYSIS_FILE) as partial:
        found = _estimated(findings, elsewhere, spilling, partial, tell)
        del findings
        found = _with_doubtful_paths(found, tell)
        found = _with_likely_path(found)  # which releases the data in which the path is found
        analysis = _summarized(found)
        tell("writing the results")
        return write_document(analysis, partial / ANALYSIS_FILE, own=own)


def analyse(
    findings: Findings, elsewhere: Elsewhere | None = None, spilling: Spilling | None = None, tell: Tell = silently
) -> tuple[Analysis, Membership]:
    """Compute benefits and groups. The membership's sequences are those of the document; other rows have -1.

    `elsewhere`, `spilling` and `tell` are as for `Estimates`.
    """
    found = _with_doubtful_paths(_estimated(findings, elsewhere, spilling, None, tell), tell)
    return _summarized(_with_likely_path(found)), found.membership


@dataclass(frozen=True, slots=True)
class _Found:
    """What is known of a run after a step of the analysis. Each step releases the columns that no later one needs."""

    analysis: Analysis
    membership: Membership
    waits: _Waits | None = None
    """None if the run shows no path."""
    doubtful: tuple[Moves, ...] = ()
    """Where the path runs with other GPU times than the likely ones."""
    path: RunPath | None = None
    agreed: float | None = None
    guessed: GuessedWork | None = None
    tried: Estimates | None = None
    """As in `_Waits`."""


@dataclass(frozen=True, slots=True)
class _Waits:
    """The data in which the path of a run is found."""

    timeline: Timeline
    work: DeviceWork
    inference: Inference
    threads: Threads
    tried: Estimates | None
    """Estimates what faster regions would save; None if the run is too long."""


def _estimated(
    findings: Findings, elsewhere: Elsewhere | None, spilling: Spilling | None, folder: Path | None, tell: Tell
) -> _Found:
    """Analyse everything but the path; write the GPU's times and the timeline into a folder, if one is given."""
    inference = _gpu_times(findings, spilling, tell)
    with ThreadPoolExecutor(1) as beside:  # compressing releases the interpreter lock, and fills pauses of replays
        written = None if folder is None else beside.submit(save_gpu_times, inference, folder / GPU_TIMES_FILE)
        analysis, membership, estimates = _without_path(findings, inference, elsewhere, tell)
        if written is not None:
            written.result()
    timeline, work, replay = findings.timeline, findings.work, estimates.replay
    if folder is not None:
        save_timeline(timeline, folder / TIMELINE_FILE, membership.line, work)
    if replay is None or work is None or not len(timeline):
        return _Found(analysis, membership)
    threads, times = replay.threads, replay.inference.work_alone()
    if len(timeline) <= LONGEST_TRIED:
        return _Found(analysis, membership, _Waits(timeline, work, times, threads, estimates.for_likely_changes()))
    return _Found(analysis, Membership.none(), _Waits(timeline.for_path(), work.for_path(), times, threads, None))


def _with_doubtful_paths(found: _Found, tell: Tell) -> _Found:
    """Find where the path is with the slow and the fast times of the GPU, which are then forgotten."""
    waits = found.waits
    if waits is None:
        return found
    tell("following the critical path")
    doubtful = doubtful_moves(waits.timeline, waits.work, waits.inference, waits.threads)
    return replace(found, doubtful=doubtful, waits=replace(waits, inference=waits.inference.likely_alone()))


def _with_likely_path(found: _Found) -> _Found:
    """Find the path with the likely times."""
    waits = found.waits
    if waits is None:
        return found
    path = likely_path(waits.timeline, waits.work, waits.inference, waits.threads)
    places = OnPath(waits.timeline, waits.work, path.stretches)
    agreed = agreement([places, *found.doubtful]) if found.doubtful else None
    guessed = guessed_work(waits.work, waits.inference)
    return _Found(found.analysis, found.membership, path=path, agreed=agreed, guessed=guessed, tried=waits.tried)


def _summarized(found: _Found) -> Analysis:
    """Return the analysis with what the run waited for, and its path."""
    if found.path is None:
        return found.analysis
    waiting = summarize(found.analysis, found.path, found.tried)
    waiting = msgspec.structs.replace(waiting, guessed=found.guessed)
    return msgspec.structs.replace(found.analysis, path=found.path.shares(found.agreed), waiting=waiting)


def _gpu_times(findings: Findings, spilling: Spilling | None, tell: Tell) -> Inference | None:
    """Infer the GPU's times; None if no trace shows any."""
    if findings.work is None:
        return None
    tell("inferring when the GPU worked")
    least, unproved = findings.wait_latency.least, findings.origin in UNPROVED
    inference = infer_gpu_times(findings.timeline, findings.work, least, anything_late=unproved)
    if spilling is None:
        return inference
    return replace(
        spilling(inference),
        likely=spilling(inference.likely),
        slow=spilling(inference.slow),
        fast=spilling(inference.fast),
        fastest=None if inference.fastest is None else spilling(inference.fastest),
    )


def _without_path(
    findings: Findings, inference: Inference | None, elsewhere: Elsewhere | None, tell: Tell
) -> tuple[Analysis, Membership, Estimates]:
    """Compute everything but the run's critical path; also return the estimates."""
    timeline, number = findings.timeline, len(findings.sites)
    sums = totals(timeline, timeline.site, np.arange(number, dtype=np.int32), number)
    bound_s = bound_by_stack(sums) if findings.bound_s is None else findings.bound_s
    moved = np.array([site.bytes for site in findings.sites], np.int64) * (sums.kind == Kind.TRANSFER)
    copy_time = copy_times(moved, sums.count, sums.total, sums.wait)
    variation = Variation.of(findings.costs, findings.probes_s, findings.work)
    estimates = _estimates(findings, copy_time, variation, inference, elsewhere, tell)
    benefits = estimates.of_sites([[index] for index in range(number)], bound_s)
    sites = described_sites(
        findings, places_of_sites(findings), sums, benefits, copy_time, estimates.pinning_costs.saved_if_free
    )
    sequences, membership, unlisted = sequences_of(findings, estimates, number)
    sequences = with_parts(sequences, membership, estimates, len(timeline))
    folds = folds_of(estimates, sites, bound_s)
    everything = everything_of(estimates, bound_s, folds, sequences)
    analysis = Analysis(
        runs=findings.runs,
        run=findings.run,
        modules=findings.modules,
        stacks=findings.stacks,
        application=findings.application,
        origin=findings.origin,
        command=findings.command,
        wall_s=findings.wall_s,
        timeline=TIMELINE_FILE,
        sites=sites,
        points=points_of(sites),
        folds=folds,
        sequences=sequences,
        costs=findings.costs,
        matching=findings.matching,
        timing=timing_waits(findings, waits_kept(timeline, findings.timing, estimates)),
        sharing=waits_kept(timeline, findings.sharing, estimates),
        ordering=waits_kept(timeline, findings.ordering, estimates),
        fetching=fetching_waits(findings, timeline, estimates),
        sending=sending_waits(findings, timeline, estimates),
        unproved=unproved_waits(findings, copy_time, variation, inference, estimates),
        allocations=findings.allocations,
        pinning=findings.pinning,
        estimator="carry" if estimates.replay is None else "replay",
        everything=everything,
        without_equal_bytes=without_equal_bytes(findings, estimates, everything),
        wait_latency=findings.wait_latency,
        device_copy_byte_ns=findings.device_copy_byte_ns,
        watch=findings.watch,
        not_measured=findings.not_measured,
        staged=findings.staged,
        marked=findings.marked,
        portion=None if findings.run is None else findings.run.portion,
        explained=_explained(findings, estimates),
        sampled=findings.sampled,
        notes=[*findings.notes, *unlisted, *_process_notes(findings)],
    )
    return analysis, membership, estimates


def _estimates(
    findings: Findings,
    copy_time: NDArray[np.int64],
    variation: Variation,
    inference: Inference | None,
    elsewhere: Elsewhere | None,
    tell: Tell,
) -> Estimates:
    return Estimates(
        findings.timeline,
        findings.work,
        copy_time,
        findings.wall_s,
        None if inference is None else lambda: inference,
        variation,
        findings.pinning,
        by_chance=() if findings.matching is None else findings.matching.by_chance,
        elsewhere=elsewhere,
        tell=tell,
    )


def _explained(findings: Findings, estimates: Estimates) -> Explained | None:
    """Return how much of the traced run's time is accounted for."""
    if estimates.replay is None or findings.work is None:
        return None
    timeline, inference = findings.timeline, estimates.replay.inference
    wall_s = findings.run.wall_s if findings.run is not None else findings.wall_s
    waited = inference.likely.waited
    return Explained(
        run_s=wall_s * len(findings.work.process_of_thread),
        calls_s=float(timeline.duration.sum() - waited) / 1e9,
        work_s=float(timeline.gap.sum()) / 1e9,
        wait_s=inference.likely.explained / 1e9,
        unexplained_wait_s=(waited - inference.likely.explained) / 1e9,
        probes_s=findings.probes_s,
        latency_s=inference.latency_ns / 1e9,
    )


def _process_notes(findings: Findings) -> list[AnyNote]:
    processes = 1 if findings.work is None else findings.work.processes
    return [SeveralProcesses(processes=processes)] if processes > 1 else []
