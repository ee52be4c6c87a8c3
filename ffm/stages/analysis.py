"""Stage 5 (dissertation 4.5): joins the runs' findings, models what fixing them would save, and writes the results."""

from __future__ import annotations

import dataclasses
import os
import shutil
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from ffm.driver.catalogue import Kind as DriverKind
from ffm.driver.catalogue import load_catalogue
from ffm.errors import DocumentError
from ffm.evidence.compiling import compilation_notes
from ffm.evidence.device_work import device_work
from ffm.evidence.documented_waits import with_documented_waits
from ffm.evidence.marked_iterations import rows_of_marked
from ffm.evidence.matching import align, translate
from ffm.evidence.operations import EVENTS, function_name
from ffm.evidence.transfers.allocations import allocation_links
from ffm.evidence.transfers.downloads import DOWNLOADS, download_uses
from ffm.evidence.transfers.host_memory import HOST_MEMORY, functions_of_stacks
from ffm.evidence.transfers.pinning import memory_to_pin
from ffm.evidence.transfers.staged_copies import sites_of_staged_copies
from ffm.model.device import DeviceWork
from ffm.model.estimators.replay import Elsewhere, Replay
from ffm.model.gpu_times.inference import infer_likely_times
from ffm.model.grouping import numbered
from ffm.model.necessity.rules import AT_UNKNOWN_TIMES, REQUIRED, Comparison, Reason
from ffm.model.steps import Tell, untold
from ffm.model.timeline import Problem, Timeline
from ffm.model.transfers import Repetition
from ffm.results.chosen_sites import are_chosen
from ffm.results.columnar.columns import Columns
from ffm.results.columnar.tables import MappedColumns, stored_table
from ffm.results.documents.analysis import AllocationLink, Analysis, Matching, PinnedMemory, StageCost, Verdict
from ffm.results.documents.document import Document
from ffm.results.documents.files import read_owned
from ffm.results.documents.measured import Baseline, Memory, SyncUse, Tracing
from ffm.results.documents.notes import AnyNote
from ffm.results.documents.run import Run
from ffm.results.folder.identity import agreeing, begin_run
from ffm.results.folder.paths import ResultsFolder, application_name
from ffm.results.memory.heap import give_back, kept_memory
from ffm.results.memory.spilling import Spilling, rows_in_memory
from ffm.results.vocabulary import Because
from ffm.stages.findings import Findings, SiteDescription
from ffm.stages.memory import GPU_TIME_TABLE, SYNCHRONIZATIONS, TRANSFERS
from ffm.stages.notes import (
    cut_notes,
    host_function_notes,
    measurement_notes,
    ordinary_memory_notes,
    stack_notes,
    unrecorded_notes,
)
from ffm.stages.portions import require_same_portion
from ffm.stages.results import write_results
from ffm.stages.sync_use import FIRST_USES
from ffm.stages.timelines import longer_by, traced_timeline
from ffm.symbols.buffer_names import BufferNames
from ffm.symbols.launched import kernels_of_sites
from ffm.symbols.named_stacks import name_stacks, unread_python
from ffm.symbols.symbolizer import Symbolizer

WORTH_MOVING_NS = 20_000
"""A required synchronization is misplaced if both its wait and the time to the first use exceed this. Below it,
launching the work that could move in between costs as much (a launch takes 5 to 10 microseconds).
"""

WORTH_MOVING_SHARE = 0.001
"""In addition, moving all occurrences of its call site must be able to save this share of the run."""

MOSTLY = 0.5
"""A synchronization is a problem only at sites where more than this share of the occurrences is unnecessary, because an
edit at the call site changes them all. The last iteration of a loop needs less than the others; that is no reason to
edit.
"""

REPEATED = (Repetition.NO_OP, Repetition.REPEAT)
"""What counts as an unnecessary transfer: its bytes need not be sent again."""

VERDICTS = {
    Repetition.NO_OP: "no-op",
    Repetition.REPEAT: "repeat",
    Repetition.COPY: "copy",
    Repetition.PARTIAL: "partial",
    Repetition.OUTSIDE_PORTION: "not judged",
}
"""Names of the verdicts on transfers; all others are `needed`."""

LISTED_MISMATCHES = 20

_TRANSFERS = [function.index for function in load_catalogue().of_kind(DriverKind.TRANSFER)]


@dataclass(frozen=True, slots=True)
class _Joined:
    """What stages 3 and 4 say about each operation that stage 2 traced. Columns of length n."""

    reason: NDArray[np.uint8]
    keep: NDArray[np.int32]
    """Stack of the synchronization that must stay; -1 for none."""
    first_use: NDArray[np.int64]
    repetition: NDArray[np.uint8]
    first: NDArray[np.int32]
    """Stack of the transfer that is repeated; -1 for none."""
    unmatched: NDArray[np.bool_]
    """Waits and uploads about which stage 3 knows nothing."""
    left_out: NDArray[np.bool_]
    """Waits and transfers that stage 3 was not to measure."""
    gpu: NDArray[np.int64]
    """How long the GPU worked, in nanoseconds, if stage 3 timed the same operation; otherwise -1."""
    arriving: NDArray[np.int64]
    """As in `DeviceWork`."""


def run_analysis(
    folder: ResultsFolder,
    elsewhere: Elsewhere | None = None,
    memory_bytes: int | None = None,
    tell: Tell = untold,
) -> Analysis:
    """Write `analysis.json` and the model's timeline from the documents of stages 1 to 4.

    `elsewhere` as for `ffm.model.estimators.replay.Replay`. If a run needs more than `memory_bytes`, its columns lie in
    files; by default, that is a share of the free memory. `tell` is told each step.

    Raises:
        DocumentError: A document or table of an earlier stage is missing, damaged, or of another program.
    """
    baseline, own_baseline = read_owned(Baseline, folder.document("baseline"))
    tracing, own_tracing = read_owned(Tracing, folder.document("tracing"))
    memory, own_memory = read_owned(Memory, folder.document("memory"))
    sync_use, own_sync_use = read_owned(SyncUse, folder.document("sync-use"))
    runs = [document.run for document in (baseline, tracing, memory, sync_use)]
    for run in runs:
        if run is not None and not run.status.sound:
            raise DocumentError(
                f"{run.command[0]} {run.status} in the {run.stage} run: that run is not whole. Run stage {run.stage} "
                "and those after it again."
            )
    if any(run is None or runs[0] is None or measured_command(run) != measured_command(runs[0]) for run in runs):
        raise DocumentError(
            f"The documents in {folder.root} come from different commands. Run all stages again on one of them."
        )
    stages = {"baseline": baseline, "tracing": tracing, "memory": memory, "sync-use": sync_use}
    require_same_portion([tracing, memory, sync_use])
    on = begin_run(folder.root, "analysis", agreeing(folder.root, stages))
    own = own_baseline and own_tracing and own_memory and own_sync_use
    spilling = Spilling(folder.root, rows_in_memory(memory_bytes))
    tell("reading what the stages found")
    columns = stored_table(tracing, "events", EVENTS, folder.root)
    with kept_memory(len(columns["start"]) <= spilling.most_rows):
        tell("joining the runs")
        traced = _traced_findings(folder, on, columns, baseline, tracing, memory, sync_use, spilling)
        tell("taking out what measuring cost")
        findings = [_without_measuring(traced, columns, tracing, spilling)]
        del traced
        give_back()
        # Nothing here may hold what the analysis lets go.
        return write_results(findings.pop(), folder.root, own=own, elsewhere=elsewhere, spilling=spilling, tell=tell)


def _without_measuring(traced: Findings, columns: MappedColumns, tracing: Tracing, spilling: Spilling) -> Findings:
    """Take the probes out of the run's times."""
    columns.release()
    give_back()
    assert traced.work is not None
    timeline = _without_probes(traced.timeline, traced.work, columns["probe"], tracing.wait_latency.least)
    columns.release()
    timeline = spilling(timeline)
    return dataclasses.replace(traced, timeline=timeline, probes_s=longer_by(traced.timeline, timeline))


def _traced_findings(
    folder: ResultsFolder,
    on: dict[str, str],
    columns: MappedColumns,
    baseline: Baseline,
    tracing: Tracing,
    memory: Memory,
    sync_use: SyncUse,
    spilling: Spilling,
) -> Findings:
    """Join what the stages found, with times as they were traced; what is not in the result is released."""
    host_memory = stored_table(tracing, "host_memory", HOST_MEMORY, folder.root)
    joined = _join(columns, tracing, memory, sync_use, folder)
    wall_s = baseline.run.wall_s if baseline.run else 0.0
    columns.release()
    assumed = columns if tracing.run is None or tracing.run.sees_waits else with_documented_waits(columns)
    traced = spilling(_timeline(assumed, joined, wall_s))
    work = spilling(device_work(assumed, traced.thread, joined.gpu, tracing, joined.arriving))
    del assumed
    columns.release()
    named = name_stacks(tracing.stacks, tracing.modules, Symbolizer())
    command = baseline.run.command if baseline.run else []
    links = allocation_links(columns, host_memory)
    sites = _sites(columns, joined, _misplaced(traced), len(named.stacks), functions_of_stacks(host_memory))
    _add_downloads(sites, columns, tracing, memory, folder)
    _name_buffers(sites, links, traced, BufferNames(named.stacks, named.modules))
    stages = (baseline, tracing, memory, sync_use)
    return Findings(
        runs=on,
        application=application_name(command),
        command=command,
        wall_s=wall_s,
        timeline=traced,
        sites=sites,
        stacks=named.stacks,
        modules=named.modules,
        run=tracing.run,
        costs=[_cost(document, baseline) for document in stages],
        matching=_matching(columns, joined),
        allocations=links,
        pinning=_pinning(columns, traced, tracing.pinning_call_ns),
        timing=_timing(joined.reason),
        sharing=joined.reason == Reason.SHARED_MEMORY,
        work=work,
        wait_latency=tracing.wait_latency,
        marked=rows_of_marked(tracing.marked, columns, traced.thread),
        watch=memory.watch,
        not_measured=np.unique(columns["stack"][joined.left_out]).tolist(),
        staged=sites_of_staged_copies(columns),
        sampled=tracing.sampled,
        kernels=kernels_of_sites(tracing.kernels),
        notes=named.notes
        + unread_python(tracing.run)
        + unrecorded_notes(stages)
        + cut_notes(stages)
        + measurement_notes(baseline, tracing)
        + ordinary_memory_notes(memory)
        + _notes_of_calls(tracing, columns, wall_s),
    )


def _notes_of_calls(tracing: Tracing, columns: Columns, wall_s: float) -> list[AnyNote]:
    """Return what is to be said about the traced calls."""
    return (
        host_function_notes(columns)
        + stack_notes(tracing.stacks, columns)
        + compilation_notes(tracing, columns, wall_s)
    )


def _without_probes(traced: Timeline, work: DeviceWork, probe: NDArray[np.int64], least_latency_ns: int) -> Timeline:
    """Return the run as it would be without probes; what is inferred from the run as it was is released."""
    inference = infer_likely_times(traced, work, least_latency_ns)
    return Replay(traced, work, inference).without_probes(probe)


def measured_command(run: Run) -> list[str]:
    """Return a run's command with the program's whole path, which can be given in several ways."""
    program, *arguments = run.command
    found = program if "/" in program else shutil.which(program) or program
    return [os.path.normpath(Path(run.working_directory, found)), *arguments]


def _pinning(columns: Columns, timeline: Timeline, call_ns: int) -> list[PinnedMemory]:
    try:
        return memory_to_pin(columns, timeline, call_ns)
    except OSError as error:
        raise DocumentError(
            "There is too little free memory to measure what pinning costs: some 32 MiB are needed. "
            "Free memory, and run stage 5 again."
        ) from error


def _join(columns: Columns, tracing: Tracing, memory: Memory, sync_use: SyncUse, folder: ResultsFolder) -> _Joined:
    count = len(columns["start"])
    synchronizations = stored_table(memory, "synchronizations", SYNCHRONIZATIONS, folder.root)
    transfers = stored_table(memory, "transfers", TRANSFERS, folder.root)
    first_uses = stored_table(sync_use, "first_uses", FIRST_USES, folder.root)
    times = stored_table(memory, "gpu_times", GPU_TIME_TABLE, folder.root)
    tables = (synchronizations, transfers, first_uses, times)
    for table in tables:
        table["stack"] = translate(table["stack"], memory.stacks, tracing.stacks)
    traced = align(tables, columns)
    reason = np.zeros(count, np.uint8)
    keep = np.full(count, -1, np.int32)
    first_use = np.full(count, -1, np.int64)
    rows = traced.rows(synchronizations)
    known = rows >= 0
    reason[rows[known]] = synchronizations["reason"][known]
    keep[rows[known]] = translate(synchronizations["keep_stack"], memory.stacks, tracing.stacks)[known]
    used = traced.rows(first_uses)
    first_use[used[used >= 0]] = first_uses["first_use"][used >= 0]

    repetition = np.zeros(count, np.uint8)
    first = np.full(count, -1, np.int32)
    sent = traced.rows(transfers)
    hashed = sent >= 0
    repetition[sent[hashed]] = transfers["kind"][hashed]
    first[sent[hashed]] = translate(transfers["first_stack"], memory.stacks, tracing.stacks)[hashed]
    timed = traced.rows(times)
    gpu, arriving = np.full(count, -1, np.int64), np.zeros(count, np.int64)
    gpu[timed[timed >= 0]] = (times["nanoseconds"] - times["arriving"])[timed >= 0]
    arriving[timed[timed >= 0]] = times["arriving"][timed >= 0]
    waits = columns["waits"] > 0
    left_out = np.zeros(count, bool)
    if memory.chosen is not None:
        among = are_chosen(memory.chosen, [stack.key for stack in tracing.stacks])
        left_out = (waits | np.isin(columns["function"], _TRANSFERS)) & ~among[columns["stack"]]
    unmatched = waits & (reason == 0) & ~left_out
    return _Joined(reason, keep, first_use, repetition, first, unmatched, left_out, gpu, arriving)


def _timeline(columns: Columns, joined: _Joined, wall_s: float) -> Timeline:
    """Return the model's table: times as measured, problems flagged."""
    timeline = traced_timeline(columns)
    reason, first_use, stack = joined.reason, joined.first_use, timeline.site
    problem = timeline.problem
    unnecessary = np.isin(reason, (Reason.NOTHING_RELIES, Reason.LATER_COVERS))
    judged = (reason != 0) & (reason != Reason.OUTSIDE_PORTION)
    unnecessary &= _share(unnecessary, judged, stack)[stack] > MOSTLY
    repeated = np.isin(joined.repetition, REPEATED)
    problem[unnecessary | (repeated & (columns["waits"] > 0))] |= np.uint8(Problem.UNNECESSARY_SYNCHRONIZATION)
    wait = columns["wait"]
    misplaced = (
        np.isin(reason, list(REQUIRED - AT_UNKNOWN_TIMES))
        & ~repeated
        & (first_use > WORTH_MOVING_NS)
        & (wait > WORTH_MOVING_NS)
    )
    misplaced &= _share(misplaced, judged, stack)[stack] > MOSTLY
    movable = np.bincount(stack, weights=np.where(misplaced, np.minimum(first_use, wait), 0))
    misplaced &= movable[stack] >= WORTH_MOVING_SHARE * wall_s * 1e9
    problem[misplaced] |= np.uint8(Problem.MISPLACED_SYNCHRONIZATION)
    problem[repeated] |= np.uint8(Problem.UNNECESSARY_TRANSFER)
    return dataclasses.replace(timeline, problem=problem, first_use=np.where(misplaced, first_use, 0))


def _timing(reason: NDArray[np.uint8]) -> NDArray[np.uint8]:
    """Return a `Comparison` for each wait that only serves timing, by its reason; otherwise 0."""
    sureness = np.zeros(len(reason), np.uint8)
    sureness[reason == Reason.HOST_TIMER] = Comparison.COMPARED
    sureness[reason == Reason.MAYBE_TIMER] = Comparison.MAYBE_COMPARED
    return sureness


def _share(some: NDArray[np.bool_], of: NDArray[np.bool_], site: NDArray[np.int32]) -> NDArray[np.float64]:
    """Return, for each site, how many of its rows in `of` are in `some`, from 0 to 1."""
    count = int(site.max(initial=-1)) + 1
    all_of = np.bincount(site, weights=of, minlength=count)
    return np.bincount(site, weights=some & of, minlength=count) / np.maximum(all_of, 1)


def _add_downloads(
    sites: list[SiteDescription], columns: Columns, tracing: Tracing, memory: Memory, folder: ResultsFolder
) -> None:
    """Add to the sites that download how much of it is touched, if stage 3 checked."""
    table = stored_table(memory, "downloads", DOWNLOADS, folder.root)
    table["stack"] = translate(table["stack"], memory.stacks, tracing.stacks)
    for site, use in download_uses(columns, table, memory.watch).items():
        sites[site] = dataclasses.replace(sites[site], download=use)


def _misplaced(timeline: Timeline) -> NDArray[np.bool_]:
    """Return which operations are misplaced synchronizations."""
    found: NDArray[np.bool_] = (timeline.problem & Problem.MISPLACED_SYNCHRONIZATION) != 0
    return found


def _name_buffers(
    sites: list[SiteDescription], links: list[AllocationLink], timeline: Timeline, names: BufferNames
) -> None:
    """Name the memory of the sites with problems, and of their allocations and frees."""
    wanted: set[int] = set(np.unique(timeline.site[timeline.problem != 0]).tolist())
    linked: set[int] = set()
    for link in links:
        if link.site in wanted:
            linked.update(site for site in (link.allocation, link.release) if site is not None)
    for site, name in names.names((site, sites[site].function) for site in wanted | linked).items():
        sites[site] = dataclasses.replace(sites[site], buffer=name)


def _sites(
    columns: Columns, joined: _Joined, misplaced: NDArray[np.bool_], stacks: int, allocators: dict[int, str]
) -> list[SiteDescription]:
    """Describe each stack: its function, bytes and verdicts. A stack without operations gets an empty one."""
    function = np.full(stacks, -1, np.int64)
    function[columns["stack"]] = columns["function"]
    moved = np.bincount(columns["stack"], weights=columns["bytes"], minlength=stacks)
    synchronization: list[list[Verdict]] = [[] for _ in range(stacks)]
    transfer: list[list[Verdict]] = [[] for _ in range(stacks)]
    for (stack, reason, keep, late), occurrences in _counts(columns["stack"], joined.reason, joined.keep, misplaced):
        if reason:
            verdict = _synchronization_verdict(
                Reason(reason), keep, occurrences, misplaced=bool(late), partly=bool(joined.left_out.any())
            )
            synchronization[stack].append(verdict)
    for (stack, kind, first), occurrences in _counts(columns["stack"], joined.repetition, joined.first):
        if kind:
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


def _counts(*identity: NDArray[np.integer] | NDArray[np.bool_]) -> list[tuple[tuple[int, ...], int]]:
    """Return the distinct rows of some columns, with how often each occurs, most frequent first."""
    if not len(identity[0]):
        return []
    number, first = numbered(*identity)
    counts = np.bincount(number)
    distinct = list(zip(*(column[first].astype(np.int64).tolist() for column in identity), strict=True))
    return [(distinct[group], int(counts[group])) for group in np.argsort(-counts, kind="stable").tolist()]


def _synchronization_verdict(reason: Reason, keep: int, occurrences: int, *, misplaced: bool, partly: bool) -> Verdict:
    """Return the verdict on a reason; `partly` if not all waits were measured, which must then stay."""
    if partly and reason == Reason.NOTHING_RELIES:
        return Verdict(kind="conditionally unnecessary", because=Because.OTHERS_STAY, occurrences=occurrences)
    if reason == Reason.NOTHING_RELIES:
        kind = "unnecessary"
    elif reason == Reason.LATER_COVERS:
        kind = "conditionally unnecessary"
    elif reason == Reason.OUTSIDE_PORTION:
        kind = "not judged"
    else:
        kind = "misplaced" if misplaced else "required"
    return Verdict(kind=kind, because=Because[reason.name], occurrences=occurrences, keep=keep if keep >= 0 else None)


def _cost(document: Document, baseline: Baseline) -> StageCost:
    run, first = document.run, baseline.run
    if run is None or first is None:
        raise DocumentError("A stage's document describes no run. Run the stages again.")
    return StageCost(
        stage=run.stage,
        wall_s=run.wall_s,
        ratio=run.wall_s / first.wall_s,
        delayed_s=run.delayed_s or 0.0,
        waiting_span_s=run.waiting_span_s,
    )


def _matching(columns: Columns, joined: _Joined) -> Matching:
    time = columns["duration"]
    unmatched = joined.unmatched
    waiting = (columns["waits"] > 0) & ~joined.left_out
    sentences = [
        f"Site {stack + 1}: {count} of its operations in stage 2 have no counterpart in stage 3, and count as needed."
        for (stack,), count in _counts(columns["stack"][unmatched])[:LISTED_MISMATCHES]
    ]
    return Matching(
        matched_s=float(time[waiting & ~unmatched].sum()) / 1e9,
        unmatched_s=float(time[unmatched].sum()) / 1e9,
        unmatched=sentences,
    )
