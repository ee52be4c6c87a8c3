"""Stage 5's document, built from the findings of the earlier stages.

Measured and imported results go through the same steps: a timeline, a description of each site (call stack), and its
meaning. In a measured timeline each row is one operation; in an imported one it sums up a stack.
"""

from __future__ import annotations

from collections import abc
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
from numpy.typing import NDArray

from ffm.evidence.transfers.host_memory import ALLOCATORS, FREE
from ffm.model.copies import copy_times
from ffm.model.device import DeviceWork
from ffm.model.estimators.bound import Totals, bound_by_stack, totals
from ffm.model.estimators.replay import Elsewhere
from ffm.model.gpu_times.inference import Inference, infer_gpu_times
from ffm.model.groups.names import base_name
from ffm.model.groups.sequences import FoundSequence, Membership, find_sequences
from ffm.model.necessity.rules import Comparison
from ffm.model.steps import Tell, untold
from ffm.model.timeline import Kind, Problem, Timeline
from ffm.model.waiting.path import places_of
from ffm.results.call_sites import Place, place_of_allocation, place_of_call, runtime_modules
from ffm.results.columnar.gpu_times_file import GPU_TIMES_FILE, save_gpu_times
from ffm.results.columnar.timeline_file import save_timeline
from ffm.results.documents.analysis import (
    UNPROVED,
    AllocationLink,
    Analysis,
    Benefit,
    DownloadUse,
    Explained,
    Group,
    KeptWait,
    MarkedIterations,
    Matching,
    PinnedMemory,
    Sequence,
    SequenceOperation,
    Site,
    StageCost,
    TimingWait,
    Verdict,
)
from ffm.results.documents.files import write_document
from ffm.results.documents.measured import NOT_MEASURED, Sampled, WaitLatency
from ffm.results.documents.run import Run
from ffm.results.documents.stacks import Module, Stack
from ffm.results.estimates import Estimates, Variation
from ffm.results.memory.heap import give_back
from ffm.results.memory.spilling import Spilling
from ffm.results.presumed import Presumed, presumed
from ffm.results.stored import ANALYSIS_FILE, TIMELINE_FILE
from ffm.results.waiting.files import WaitingFiles
from ffm.results.waiting.run_path import agreed_share, likely_path
from ffm.results.waiting.summary import summarize
from ffm.stages.sequence_parts import with_parts

LONGEST_TRIED = 1_000_000
"""Of a run with more operations it is not replayed what faster regions would save, so that less memory is needed."""

LISTED_SEQUENCES = 1000
"""The document lists the sequences that save most; a note says how many more there are."""

REPLAYED_ALTHOUGH_KEPT = 40
"""Sites that are replayed without the waits that they keep, those that wait longest."""

HOST_FUNCTIONS = frozenset((*ALLOCATORS, FREE))


@dataclass(frozen=True, slots=True)
class SiteDescription:
    """What is known about a site besides its rows. `stack` indexes `Findings.stacks`, frames innermost first."""

    stack: int
    function: str
    """The driver function, `private` if a library waited without one, or empty if unknown."""
    bytes: int = 0
    """Bytes that all its transfers moved."""
    synchronization: list[Verdict] = field(default_factory=list)
    transfer: list[Verdict] = field(default_factory=list)
    download: DownloadUse | None = None
    """As in `documents.analysis.Site`."""
    buffer: str = ""
    """As in `documents.analysis.Site`."""


@dataclass(frozen=True, slots=True)
class Findings:
    """Everything that the analysis document is built from.

    `sites[i]` describes the rows with `timeline.site == i`. `sequences` and `bound_s` are for imports: sequences that
    cannot be found in the rows, and seconds per site that another tool computed from more than the rows contain.
    """

    application: str
    command: list[str]
    wall_s: float
    timeline: Timeline
    sites: list[SiteDescription]
    stacks: list[Stack]
    modules: list[Module]
    origin: str = "ffm"
    runs: dict[str, str] = field(default_factory=dict)
    run: Run | None = None
    costs: list[StageCost] = field(default_factory=list)
    matching: Matching | None = None
    allocations: list[AllocationLink] = field(default_factory=list)
    pinning: list[PinnedMemory] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    sequences: tuple[list[FoundSequence], Membership] | None = None
    bound_s: NDArray[np.float64] | None = None
    work: DeviceWork | None = None
    """What the operations do on the GPU; None if no trace shows it."""
    timing: NDArray[np.uint8] | None = None
    """For each row of the timeline, if its wait serves only timing, how surely: a `Comparison` of
    `ffm.model.necessity.rules`; otherwise 0. None if it is unknown.
    """
    sharing: NDArray[np.bool_] | None = None
    """For each row of the timeline, whether nothing relies on its wait but, possibly, another process that shares
    device memory. None if it is unknown.
    """
    unproved: NDArray[np.bool_] | None = None
    """For each row of a profiler's timeline, whether it waits, or would if there were work; whether the program needs
    that is unknown. None for measured runs.
    """
    presumed: bool = False
    """Whether one traced run is all that there is: then every wait and transfer is presumed unnecessary, to say what
    doing without it would save at most.
    """
    wait_latency: WaitLatency = NOT_MEASURED
    marked: list[MarkedIterations] = field(default_factory=list)
    """As in `documents.analysis.Analysis`."""
    watch: str = ""
    """As in `documents.analysis.Analysis`."""
    not_measured: list[int] = field(default_factory=list)
    """As in `documents.analysis.Analysis`."""
    staged: list[int] = field(default_factory=list)
    """As in `documents.analysis.Analysis`."""
    probes_s: float = 0.0
    """As in `documents.analysis.Explained`."""
    sampled: Sampled = field(default_factory=Sampled)
    """As in `documents.analysis.Analysis`."""
    kernels: dict[int, list[str]] = field(default_factory=dict)
    """By site, as in `documents.analysis.Site`."""


def write_results(
    findings: Findings,
    folder: Path,
    *,
    own: bool = False,
    elsewhere: Elsewhere | None = None,
    spilling: Spilling | None = None,
    tell: Tell = untold,
) -> Analysis:
    """Analyse, and write the document and its timeline into a folder, which is created if necessary.

    `own` is whether this user measured them; `elsewhere`, `spilling` and `tell` are as for `Estimates`. The document
    comes last, so that a folder with a document has all of its files.
    """
    folder.mkdir(parents=True, exist_ok=True)
    analysis, membership = analyse(findings, elsewhere, spilling, WaitingFiles(folder), tell)
    tell("writing the results")
    give_back()
    save_timeline(findings.timeline, folder / TIMELINE_FILE, membership.line, findings.work)
    return write_document(analysis, folder / ANALYSIS_FILE, own=own)


def analyse(
    findings: Findings,
    elsewhere: Elsewhere | None = None,
    spilling: Spilling | None = None,
    files: WaitingFiles | None = None,
    tell: Tell = untold,
) -> tuple[Analysis, Membership]:
    """Compute benefits and groups. The membership's sequences are those of the document; other rows have -1.

    `elsewhere`, `spilling` and `tell` are as for `Estimates`. What the run waited for is written into `files`: there is
    too much of it to return.
    """
    inference = _gpu_times(findings, spilling, tell)
    if files is not None:
        save_gpu_times(inference, files.folder / GPU_TIMES_FILE)
    analysis, membership, estimates = _without_path(findings, inference, elsewhere, tell)
    del inference
    timeline = findings.timeline
    if estimates.replay is None or findings.work is None or not len(timeline):
        if files is not None:
            files.write_nothing()
        return analysis, membership
    inference, threads = estimates.replay.inference.work_alone(), estimates.replay.threads
    tried = estimates if len(timeline) <= LONGEST_TRIED else None
    del estimates  # finding the path takes as much memory again
    give_back()
    tell("following the critical path")
    run = likely_path(timeline, findings.work, inference, threads)
    if files is not None:
        files.write(run.graph, run.stretches, run.meetings)
    give_back()
    waiting, path, places = summarize(analysis, run, tried), run.shares(), places_of(run.stretches)
    del run, tried
    inference = inference.doubtful()
    give_back()
    agreed = agreed_share(timeline, findings.work, inference, threads, places)
    path = msgspec.structs.replace(path, agreed=agreed)
    return msgspec.structs.replace(analysis, path=path, waiting=waiting), membership


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
    sites = _sites(findings, _places(findings), sums, benefits, copy_time, estimates.before_pinning)
    sequences, membership, note = _sequences(findings, estimates, number)
    sequences = with_parts(sequences, membership, estimates, len(timeline))
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
        points=_points(sites),
        folds=_folds(estimates, sites, bound_s),
        sequences=sequences,
        costs=findings.costs,
        matching=findings.matching,
        timing=_timing(findings, _waits_kept(timeline, findings.timing, estimates)),
        sharing=_waits_kept(timeline, findings.sharing, estimates),
        unproved=_unproved(findings, copy_time, variation, inference, estimates),
        allocations=findings.allocations,
        pinning=findings.pinning,
        estimator="carry" if estimates.replay is None else "replay",
        everything=estimates.of_everything(),
        wait_latency=findings.wait_latency,
        watch=findings.watch,
        not_measured=findings.not_measured,
        staged=findings.staged,
        marked=findings.marked,
        portion=None if findings.run is None else findings.run.portion,
        explained=_explained(findings, estimates),
        sampled=findings.sampled,
        notes=findings.notes + note + _process_note(findings),
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
        elsewhere=elsewhere,
        tell=tell,
    )


def _places(findings: Findings) -> list[Place]:
    """Return where in the program each site is."""
    runtime = runtime_modules(findings.modules)
    return [
        place_of_allocation(findings.stacks[site.stack].frames, site.function)
        if site.function in HOST_FUNCTIONS
        else place_of_call(findings.stacks[site.stack].frames, site.function, runtime)
        for site in findings.sites
    ]


def _timing(findings: Findings, kept: list[KeptWait]) -> list[TimingWait]:
    """Return the sites that wait only for timing, and whether that is certain."""
    site, sureness = findings.timeline.site, findings.timing
    return [
        TimingWait(
            site=wait.site,
            occurrences=wait.occurrences,
            certain=bool((sureness[(site == wait.site) & (sureness > 0)] == Comparison.COMPARED).all()),
            saving_s=wait.saving_s,
            low_s=wait.low_s,
            high_s=wait.high_s,
        )
        for wait in kept
        if sureness is not None
    ]


def _unproved(
    findings: Findings,
    copy_time: NDArray[np.int64],
    variation: Variation,
    inference: Inference | None,
    estimates: Estimates,
) -> list[KeptWait]:
    """Return the sites of which it is not proved whether their waits are needed: of a quick run, all."""
    if findings.presumed:
        return _presumed(findings, copy_time, variation, inference)
    return _kept(findings.timeline, findings.unproved, estimates)


def _waits_kept(timeline: Timeline, kept: NDArray[Any] | None, estimates: Estimates) -> list[KeptWait]:
    """Return the same for those of the rows, flagged by a value other than 0, that waited."""
    return [] if kept is None else _kept(timeline, (kept > 0) & (timeline.wait > 0), estimates)


def _kept(timeline: Timeline, kept: NDArray[np.bool_] | None, estimates: Estimates) -> list[KeptWait]:
    """Return the sites with such rows, with what it would save not to wait there, largest saving first."""
    if kept is None or not kept.any():
        return []
    # An explicit synchronization is left out as a whole.
    costs = np.where(timeline.kind == Kind.SYNCHRONIZATION, timeline.duration, timeline.wait)
    waited = np.bincount(timeline.site, weights=np.where(kept, costs, 0))
    count = np.bincount(timeline.site, weights=kept).astype(np.int64)
    most = np.argsort(-waited, kind="stable")[:REPLAYED_ALTHOUGH_KEPT]
    sites = most[count[most] > 0].tolist()
    found = [
        KeptWait(
            site=site,
            occurrences=int(count[site]),
            saving_s=without.likely_s,
            low_s=without.low_s,
            high_s=without.high_s,
        )
        for site, without in zip(
            sites,
            estimates.without_each([np.flatnonzero((timeline.site == site) & kept) for site in sites]),
            strict=False,
        )
    ]
    return sorted(found, key=lambda wait: -wait.saving_s)


def _presumed(
    findings: Findings, copy_time: NDArray[np.int64], variation: Variation, inference: Inference | None
) -> list[KeptWait]:
    """Return all sites that wait or transfer, with what doing without each would save, largest saving first."""
    timeline = presumed(findings.timeline, findings.work)
    count = np.bincount(timeline.site, weights=timeline.problem != 0, minlength=len(findings.sites)).astype(np.int64)
    sites = np.flatnonzero(count).tolist()
    given = None if inference is None else inference.if_anything_is_late
    estimates = Presumed(findings.timeline, findings.work, copy_time, findings.wall_s, given, variation)
    benefits = estimates.of_sites([[site] for site in sites])
    kept = [
        KeptWait(
            site=site,
            occurrences=int(count[site]),
            saving_s=benefit.expected_s,
            low_s=0.0,
            high_s=benefit.high_s or 0.0,
        )
        for site, benefit in zip(sites, benefits, strict=True)
    ]
    return sorted(kept, key=lambda wait: (-wait.saving_s, -wait.high_s))


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


def _process_note(findings: Findings) -> list[str]:
    processes = 1 if findings.work is None else findings.work.processes
    if processes < 2:
        return []
    return [
        f"{processes} processes called the driver. Counts and times of sites are sums over them. A saving is that of "
        "the run: of processes that run the same code, the last to end counts."
    ]


def _sites(
    findings: Findings,
    places: list[Place],
    sums: Totals,
    benefits: list[Benefit],
    copy_time: NDArray[np.int64],
    before_pinning: dict[int, Benefit],
) -> list[Site]:
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
            synchronization=description.synchronization,
            transfer=description.transfer,
            benefit=benefits[index],
            before_pinning_s=before_pinning[index].expected_s if index in before_pinning else None,
            kernels=findings.kernels.get(index, []),
        )
        for index, (description, place) in enumerate(zip(findings.sites, places, strict=True))
    ]


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


def _worth_listing(site: Site) -> bool:
    return site.problem_count > 0 or site.benefit.bound_s > 0


def _conditional(sites: list[Site], members: list[int]) -> bool:
    return any(verdict.conditional for index in members for verdict in sites[index].synchronization)


def _order(group: Group) -> tuple[float, float]:
    return _worth(group.benefit)


def _worth(benefit: Benefit) -> tuple[float, float]:
    """Sort key that puts the largest savings first."""
    if benefit.replay_s is not None:
        return (-benefit.replay_s, -benefit.carry_s)
    return (-max(benefit.carry_s, benefit.bound_s), -benefit.bound_s)


def _points(sites: list[Site]) -> list[Group]:
    """Return one group for each call stack by address, largest saving first."""
    points = [
        Group(
            name=f"{site.call} {site.file.rpartition('/')[2]}:{site.line}" if site.line else site.call,
            sites=[index],
            count=site.count,
            benefit=site.benefit,
            conditional=_conditional(sites, [index]),
        )
        for index, site in enumerate(sites)
        if _worth_listing(site)
    ]
    return sorted(points, key=_order)


def _folds(estimates: Estimates, sites: list[Site], bound_s: NDArray[np.float64]) -> list[Group]:
    """Group by CUDA call and, within that, by calling function, template arguments dropped (Figure 5.3)."""
    calls: dict[str, dict[str, list[int]]] = {}
    for index, site in enumerate(sites):
        if _worth_listing(site):
            calls.setdefault(site.call, {}).setdefault(base_name(site.caller), []).append(index)
    parts = [(call, caller, members) for call, callers in calls.items() for caller, members in callers.items()]
    whole = {call: [site for part in callers.values() for site in part] for call, callers in calls.items()}

    def benefits(groups: list[list[int]]) -> list[Benefit]:
        return estimates.of_sites(groups, np.array([bound_s[members].sum() for members in groups]))

    def group(name: str, members: list[int], benefit: Benefit, parts: list[Group]) -> Group:
        return Group(
            name=name,
            sites=members,
            count=sum(sites[index].count for index in members),
            benefit=benefit,
            conditional=_conditional(sites, members),
            parts=sorted(parts, key=_order),
        )

    by_call: dict[str, list[Group]] = {call: [] for call in calls}
    for (call, caller, members), benefit in zip(parts, benefits([part[2] for part in parts]), strict=True):
        by_call[call].append(group(caller, members, benefit, []))
    folds = [
        group(call, whole[call], benefit, by_call[call])
        for call, benefit in zip(whole, benefits(list(whole.values())), strict=True)
    ]
    return sorted(folds, key=_order)


def _sequences(findings: Findings, estimates: Estimates, sites: int) -> tuple[list[Sequence], Membership, list[str]]:
    """Return the sequences that save most, the rows that belong to them, and a note if there are more."""
    found: abc.Sequence[FoundSequence]
    if findings.sequences:
        found, given = findings.sequences
        membership = Membership(given.line.copy(), given.offsets)
    else:
        found, membership = find_sequences(findings.timeline, sites)
    benefits = estimates.of_groups(membership.line, membership.sequence_of_line(), len(found))
    order = np.array(sorted(range(len(found)), key=lambda index: _worth(benefits[index]))[:LISTED_SEQUENCES], np.int64)
    listed = [(found[index], benefits[index]) for index in order]
    sequences = [
        Sequence(
            operations=[
                SequenceOperation(site=line.site, count=line.count, issues=_issues(line.problem))
                for line in sequence.lines
            ],
            recurrences=sequence.recurrences,
            ends_at=sequence.ends_at,
            benefit=benefit,
        )
        for sequence, benefit in listed
    ]
    note = [f"{len(found)} different sequences were found; the {LISTED_SEQUENCES} that save most are listed."]
    return sequences, membership.reorder(order), note if len(found) > LISTED_SEQUENCES else []


def _issues(problem: Problem) -> list[str]:
    synchronization = Problem.UNNECESSARY_SYNCHRONIZATION | Problem.MISPLACED_SYNCHRONIZATION
    names = {"synchronization": synchronization, "transfer": Problem.UNNECESSARY_TRANSFER}
    return [name for name, flags in names.items() if problem & flags]
