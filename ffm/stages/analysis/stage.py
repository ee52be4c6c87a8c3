"""Stage 5 (dissertation 4.5): joins the runs' findings, models what fixing them would save, and writes the results."""

from __future__ import annotations

import dataclasses
import os
import shutil
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
from numpy.typing import NDArray

from ffm.errors import DocumentError
from ffm.evidence.compiling import compilation_notes
from ffm.evidence.device_work import device_work
from ffm.evidence.documented_waits import with_documented_waits
from ffm.evidence.marked_iterations import rows_of_marked
from ffm.evidence.operations import EVENTS
from ffm.evidence.transfers.allocations import allocation_links
from ffm.evidence.transfers.host_memory import HOST_MEMORY, functions_of_stacks
from ffm.evidence.transfers.pinning import memory_to_pin
from ffm.evidence.transfers.staged_copies import sites_of_staged_copies
from ffm.instrument.pinning import least_pinning_s
from ffm.model.codes import is_one_of
from ffm.model.device import DeviceWork
from ffm.model.estimators.replay import Elsewhere, Replay
from ffm.model.gpu_times.inference import infer_likely_times
from ffm.model.necessity.reasons import Reason
from ffm.model.timeline import Timeline
from ffm.model.transfers import FROM_ELSEWHERE
from ffm.results.columnar.columns import Columns
from ffm.results.columnar.tables import MappedColumns, stored_table
from ffm.results.documents.analysis import Analysis, PinnedMemory, StageCost
from ffm.results.documents.document import Document
from ffm.results.documents.files import read_owned
from ffm.results.documents.measured import Baseline, Memory, SyncUse, Tracing
from ffm.results.documents.notes import AnyNote
from ffm.results.documents.run import Run
from ffm.results.folder.identity import agreeing, begin_run
from ffm.results.folder.paths import ResultsFolder, application_name
from ffm.results.memory.heap import kept_memory
from ffm.results.memory.small_pages import small_pages
from ffm.results.memory.spilling import Spilling, rows_in_memory
from ffm.stages.analysis.descriptions import add_downloads, describe_sites, name_buffers
from ffm.stages.analysis.findings import Findings
from ffm.stages.analysis.joined import Joined, join, matching
from ffm.stages.analysis.notes import (
    cut_notes,
    host_function_notes,
    measurement_notes,
    ordinary_memory_notes,
    stack_notes,
    unrecorded_notes,
)
from ffm.stages.analysis.problems import (
    misplaced_synchronizations,
    only_order_streams,
    timeline_of_problems,
    waits_for_timing,
)
from ffm.stages.analysis.python_waits import fetches_of, only_read_host_memory, sends_of
from ffm.stages.analysis.results import write_results
from ffm.stages.analysis.timelines import longer_by, portion_without_probes
from ffm.stages.portions import require_same_portion
from ffm.steps import Tell, silently
from ffm.symbols.buffer_names import BufferNames
from ffm.symbols.launched import kernels_of_sites
from ffm.symbols.named_stacks import name_stacks, unread_python
from ffm.symbols.symbolizer import Symbolizer


@small_pages()
def run_analysis(
    folder: ResultsFolder,
    elsewhere: Elsewhere | None = None,
    memory_bytes: int | None = None,
    tell: Tell = silently,
) -> Analysis:
    """Write `analysis.json` and the model's timeline from the documents of stages 1 to 4.

    `elsewhere` as for `ffm.model.estimators.replay.Replay`. If a run needs more than `memory_bytes`, its columns lie in
    files; by default, that is a share of the free memory. `tell` is called with each step.

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
                f"{run.command[0]} {run.status} in the {run.stage} run: that run is incomplete. Run stage {run.stage} "
                "and those after it again."
            )
    if any(run is None or runs[0] is None or command_with_path(run) != command_with_path(runs[0]) for run in runs):
        raise DocumentError(
            f"The documents in {folder.root} come from different commands. Run all stages again on one of them."
        )
    if len({run.stdin and run.stdin.sha256 for run in runs if run is not None}) > 1:
        raise DocumentError(
            f"The program read different standard input in the runs in {folder.root}. Run all stages again with one "
            "file."
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
        # Nothing here may keep what the analysis releases.
        return write_results(findings.pop(), folder.root, own=own, elsewhere=elsewhere, spilling=spilling, tell=tell)


def _without_measuring(traced: Findings, columns: MappedColumns, tracing: Tracing, spilling: Spilling) -> Findings:
    """Take the probes out of the run's times."""
    columns.release()
    assert traced.work is not None
    timeline = _without_probes(traced.timeline, traced.work, columns["probe"], tracing.wait_latency.least)
    timeline = spilling(timeline)
    run = traced.run
    if run is not None and run.portion is not None:
        run = msgspec.structs.replace(run, portion=portion_without_probes(run.portion, traced.timeline, timeline))
    probes_s = longer_by(traced.timeline, timeline)
    columns.release()
    return dataclasses.replace(traced, timeline=timeline, run=run, probes_s=probes_s)


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
    joined = join(columns, tracing, memory, sync_use, folder)
    wall_s, command = (baseline.run.wall_s, baseline.run.command) if baseline.run else (0.0, [])
    traced, work = _timeline_and_work(columns, tracing, joined, wall_s, spilling)
    named = name_stacks(tracing.stacks, tracing.modules, Symbolizer())
    links = allocation_links(columns, host_memory)
    late = misplaced_synchronizations(traced)
    sites = describe_sites(columns, joined, late, len(named.stacks), functions_of_stacks(host_memory))
    add_downloads(sites, columns, tracing, memory, folder)
    columns.release()
    name_buffers(sites, links, traced, BufferNames(named.stacks, named.modules))
    pinning = _pinning(columns, traced, tracing)
    columns.release()
    uploads = only_read_host_memory(columns)
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
        costs=[_cost(document, baseline) for document in (baseline, tracing, memory, sync_use)],
        matching=matching(columns, joined, traced),
        allocations=links,
        pinning=pinning,
        timing=_unless_empty(waits_for_timing(joined.reason)),
        sharing=_unless_empty(is_one_of(joined.reason, (Reason.SHARED_MEMORY,))),
        ordering=_unless_empty(only_order_streams(joined.reason, traced)),
        equal_bytes=_unless_empty(is_one_of(joined.repetition, FROM_ELSEWHERE)),
        fetching=fetches_of(joined.reason, joined.keep, uploads, traced, named.stacks),
        sending=sends_of(joined.reason, joined.keep, uploads, traced, named.stacks, columns),
        work=work,
        wait_latency=tracing.wait_latency,
        device_copy_byte_ns=tracing.device_copy_byte_ns,
        marked=rows_of_marked(tracing.marked, columns, traced.thread),
        watch=memory.watch,
        not_measured=np.unique(columns["stack"][joined.left_out]).tolist(),
        staged=sites_of_staged_copies(columns),
        sampled=tracing.sampled,
        kernels=kernels_of_sites(tracing.kernels),
        notes=named.notes
        + _notes_of_stages(baseline, tracing, memory, sync_use)
        + _notes_of_calls(tracing, columns, wall_s),
    )


def _unless_empty(found: NDArray[Any]) -> NDArray[Any] | None:
    """Return what was found of each row; None if that is nothing of any, which then takes no memory."""
    return found if found.any() else None


def _timeline_and_work(
    columns: MappedColumns, tracing: Tracing, joined: Joined, wall_s: float, spilling: Spilling
) -> tuple[Timeline, DeviceWork]:
    """Return the model's tables of a traced run; what they are made from is read again for each."""
    columns.release()
    assumed = columns if tracing.run is None or tracing.run.sees_waits else with_documented_waits(columns)
    traced = spilling(timeline_of_problems(assumed, joined, wall_s))
    columns.release()
    work = spilling(device_work(assumed, traced.thread, joined.gpu, tracing, joined.arriving))
    columns.release()
    return traced, work


def _notes_of_stages(baseline: Baseline, tracing: Tracing, memory: Memory, sync_use: SyncUse) -> list[AnyNote]:
    stages = (baseline, tracing, memory, sync_use)
    return [
        *unread_python(tracing.run),
        *unrecorded_notes(stages),
        *cut_notes(stages),
        *measurement_notes(baseline, tracing),
        *ordinary_memory_notes(memory),
    ]


def _notes_of_calls(tracing: Tracing, columns: Columns, wall_s: float) -> list[AnyNote]:
    """Return the notes about the traced calls."""
    return (
        host_function_notes(columns)
        + stack_notes(tracing.stacks, columns)
        + compilation_notes(tracing, columns, wall_s)
    )


def _without_probes(traced: Timeline, work: DeviceWork, probe: NDArray[np.int64], least_latency_ns: int) -> Timeline:
    """Return the run as it would be without probes; what is inferred from the run as it was is released."""
    inference = infer_likely_times(traced, work, least_latency_ns)
    return Replay(traced, work, inference).without_probes(probe)


def command_with_path(run: Run) -> list[str]:
    """Return a run's command with the program's whole path, which can be given in several ways."""
    program, *arguments = run.command
    found = program if "/" in program else shutil.which(program) or program
    return [os.path.normpath(Path(run.working_directory, found)), *arguments]


def _pinning(columns: Columns, timeline: Timeline, tracing: Tracing) -> list[PinnedMemory]:
    if tracing.pinning_byte_ns is not None:
        least_s = tracing.pinning_byte_ns / 1e9
    else:
        try:
            least_s = least_pinning_s()
        except OSError as error:
            raise DocumentError(
                "There is too little free memory to measure what pinning costs: some 32 MiB are needed. "
                "Free memory, and run stage 5 again."
            ) from error
    return memory_to_pin(columns, timeline, least_s, tracing.pinning_call_ns)


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
