"""Stage 3 (dissertation 4.3): who used what each synchronization protects; what each transfer repeats.

This runs the program and stores what `ffm.stages.judging` concludes.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np

from ffm.driver.catalogue import load_catalogue
from ffm.driver.vocabulary import Effect
from ffm.errors import ProgramError
from ffm.evidence.chosen_sites import stacks_to_watch
from ffm.evidence.operations import EVENTS, operation_columns
from ffm.evidence.stack_table import StackTable
from ffm.instrument.modes import Mode
from ffm.instrument.session.instruments import HeapRequest
from ffm.results.chosen_sites import are_chosen
from ffm.results.columnar.columns import Columns
from ffm.results.columnar.tables import stored_table, write_table
from ffm.results.documents.files import write_document
from ffm.results.documents.measured import Baseline, Memory, Tracing
from ffm.results.folder.identity import read_latest
from ffm.results.memory.heap import kept_memory
from ffm.results.memory.small_pages import small_pages
from ffm.stages.judging import judged_processes
from ffm.stages.measure import Measurement, Request, measure, require_sound
from ffm.stages.plan_files import write_unread, write_watch_plan
from ffm.stages.portions import lasting, read_tracing, traced_portion
from ffm.stages.tracing import traced_functions


def run_memory(request: Request) -> Memory:
    """Run the program with host memory watched, transfers hashed and the GPU's work timed; write `memory.json` and its
    tables.

    Raises:
        DocumentError: Stage 1 is missing; or stage 2, if the stage is limited to chosen sites.
        ProgramError: The program could not be measured, or failed; or it never calls a chosen site.
    """
    baseline = read_latest(Baseline, request.folder, "baseline")
    tracing = read_tracing(request.folder)
    plan, planned = (None, []) if request.chosen is None else _plan(request, request.chosen)
    trace = request.watch == "trace"
    measured = measure(
        "memory",
        request,
        on=baseline.runs,
        functions=watched_functions(baseline),
        mode=Mode.CONTENTS
        | Mode.WATCH
        | Mode.GPU_TIMES
        | Mode.NAMES
        | (Mode.NONE if request.ordinary_memory else Mode.NO_ORDINARY)
        | (Mode.NONE if plan is None else Mode.PLAN | Mode.CHOSEN),
        plan=plan,
        own_pages=None if trace else requests_of(tracing),
        trace=trace,
        portion=traced_portion(tracing),
        until=lasting(request.folder, request.for_s),
        unread=write_unread([module.path for module in baseline.modules], tracing, request.folder.root),
    )
    return record_memory(measured, request, planned)


def watched_functions(baseline: Baseline) -> list[str]:
    """Return the functions to hook: those of stage 2, and those that end a context, or let it reach another device."""
    effects = (Effect.END_CONTEXT, Effect.RELEASE_CONTEXT, Effect.REACH_PEER)
    more = [function.name for effect in effects for function in load_catalogue().with_effect(effect)]
    return [*traced_functions(baseline.functions), *more]


def requests_of(tracing: Tracing | None) -> list[HeapRequest]:
    """Return whose heap blocks get pages of their own: of those to which stage 2 saw downloads, if it has run."""
    if tracing is None:
        return []
    return [HeapRequest(tracing.modules[one.module].path, one.offset, one.bytes) for one in tracing.requested]


def _plan(request: Request, chosen: list[str]) -> tuple[Path, list[str]]:
    """Write the plan for chosen sites; return its file, and the keys of its stacks."""
    tracing = read_latest(Tracing, request.folder, "tracing")
    columns = stored_table(tracing, "events", EVENTS, request.folder.root)
    among = are_chosen(chosen, [stack.key for stack in tracing.stacks])
    if not among[np.unique(columns["stack"])].any():
        raise ProgramError(
            f"{request.command[0]} calls none of the chosen sites in this run. Choose them from a quick run of the "
            "same program: `ffm run --quick`."
        )
    path = request.folder.root / "memory.plan"
    planned = [tracing.stacks[number].key for number in stacks_to_watch(columns, among)]
    write_watch_plan([bytes.fromhex(key) for key in planned], path)
    return path, planned


@kept_memory()
@small_pages()
def record_memory(measured: Measurement, request: Request, planned: Sequence[str] = ()) -> Memory:
    """Judge and store a watched run; `planned` are the keys of what was watched if the run was limited to some sites.

    Raises:
        ProgramError: The program failed.
    """
    stacks = StackTable()
    columns = operation_columns(measured.recordings, stacks)
    among, unseen = np.ones(len(stacks.stacks), bool), np.zeros(len(stacks.stacks), bool)
    if request.chosen is not None:
        keys = [stack.key for stack in stacks.stacks]
        among = are_chosen(request.chosen, keys)
        unseen[stacks_to_watch(columns, among)] = True  # where this run calls what the traced one did not
        unseen &= ~are_chosen(planned, keys)
    parts = judged_processes(measured.recordings, columns, unseen, among)
    for name in ("synchronizations", "transfers", "accesses", "downloads", "gpu-times"):
        _write(request, f"memory-{name}", [part[name] for part in parts])
    document = Memory(
        runs=measured.runs,
        run=measured.run,
        modules=stacks.modules,
        stacks=stacks.stacks,
        watch=request.watch,
        ordinary_memory=request.ordinary_memory,
        chosen=request.chosen,
        synchronizations=request.folder.table("memory-synchronizations").name,
        transfers=request.folder.table("memory-transfers").name,
        accesses=request.folder.table("memory-accesses").name,
        downloads=request.folder.table("memory-downloads").name,
        gpu_times=request.folder.table("memory-gpu-times").name,
    )
    document = write_document(document, request.folder.document("memory"), own=True)
    require_sound(measured.run, request)
    return document


def _write(request: Request, name: str, parts: list[Columns]) -> None:
    """Write a table of all processes."""
    whole = parts[0]
    if len(parts) > 1:
        whole = {column: np.concatenate([part[column] for part in parts]) for column in parts[0]}
    write_table(whole, request.folder.table(name))
