"""What a reader of results must know about how they were measured."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence

import numpy as np

from ffm.driver.vocabulary import Kind
from ffm.evidence.calls import calls_where
from ffm.instrument.recording.layout import constant
from ffm.instrument.session.cut import POLITE_S
from ffm.model.grouping import looked_up
from ffm.results.columnar.columns import Columns
from ffm.results.documents.document import Document
from ffm.results.documents.measured import Baseline, Memory, Tracing
from ffm.results.documents.notes import (
    AnyNote,
    BlockingLaunches,
    CostlyTracing,
    CutStacks,
    FirstLockWaits,
    HeldBeside,
    HostFunctions,
    KilledProgram,
    LostOperations,
    OrdinaryMemory,
    UnfinishedCalls,
    UnhookedFunctions,
    UnknownLatency,
    UnknownStacks,
    UnrecordedProcesses,
    UnseenWaits,
)
from ffm.results.documents.stacks import Stack
from ffm.results.variation import COSTLY_TRACING, comparable_s, spans_compare
from ffm.symbols.demangle import demangle

WORTH_SAYING = 0.02
"""Share of the run: a smaller uncertainty of its time is not worth a note."""


def unrecorded_notes(documents: Iterable[Document]) -> list[AnyNote]:
    """Return a note for each run in which processes ended before they could record anything."""
    return [
        UnrecordedProcesses(stage=run.stage, processes=run.unrecorded)
        for run in (document.run for document in documents)
        if run is not None and run.unrecorded
    ]


def cut_notes(documents: Iterable[Document]) -> list[AnyNote]:
    """Return notes on each run that ffm ended: the calls left out, and whether the program had to be killed."""
    notes: list[AnyNote] = []
    for run in (document.run for document in documents):
        if run is None or run.status.cut is None:
            continue
        if unfinished := sum(process.unfinished for process in run.processes):
            notes.append(UnfinishedCalls(stage=run.stage, calls=unfinished))
        if run.status.signal == "SIGKILL":
            notes.append(KilledProgram(stage=run.stage, asked_s=POLITE_S))
    return notes


def ordinary_memory_notes(memory: Memory) -> list[AnyNote]:
    """Return a note if a kernel received what may be the address of ordinary memory, which ended the watch."""
    if memory.run is None:
        return []
    for process in memory.run.processes:
        if process.ordinary_memory:
            return [
                OrdinaryMemory(
                    kernel=demangle(process.ordinary_kernel),
                    offset=process.ordinary_offset,
                    cause=process.ordinary_cause,
                )
            ]
    return []


def host_function_notes(columns: Columns) -> list[AnyNote]:
    """Return a note if streams call host functions, because waiting for one of those needs no driver."""
    calls = int(calls_where(columns["function"], lambda function: function.kind is Kind.HOST_FUNCTION).sum())
    return [HostFunctions(calls=calls)] if calls else []


def stack_notes(stacks: Sequence[Stack], columns: Columns) -> list[AnyNote]:
    """Return notes if operations are known by the inner frames of their stack only, or not even by these."""
    cut = _operations_at([stack.truncated and bool(stack.frames) for stack in stacks], columns)
    unknown = _operations_at([not stack.frames for stack in stacks], columns)
    of = len(columns["stack"])
    notes: list[AnyNote] = []
    if cut:
        notes.append(CutStacks(operations=cut, of=of))
    if unknown:
        notes.append(UnknownStacks(operations=unknown, of=of))
    return notes


def _operations_at(chosen: list[bool], columns: Columns) -> int:
    """Return how many operations have one of the chosen stacks."""
    return int(looked_up(np.array(chosen), columns["stack"]).sum()) if any(chosen) else 0


def measurement_notes(baseline: Baseline, tracing: Tracing) -> list[AnyNote]:
    """Return a note for each thing that could not be measured as it should."""
    notes: list[AnyNote] = []
    run = baseline.run
    if run is not None and run.held_beside_s > WORTH_SAYING * run.wall_s:
        notes.append(HeldBeside(wall_s=run.wall_s, preparation_s=run.preparation_s, beside_s=run.held_beside_s))
    if run is not None and tracing.run is not None:
        bare_s, traced_s = comparable_s(run, tracing.run)
        if traced_s > COSTLY_TRACING * bare_s > 0:
            notes.append(CostlyTracing(times=traced_s / bare_s, between_waits=spans_compare(run, tracing.run)))
    return notes + tracing_notes(tracing)


def tracing_notes(tracing: Tracing) -> list[AnyNote]:
    """Return a note for each thing that tracing could not measure as it should."""
    notes: list[AnyNote] = []
    if tracing.run is not None and tracing.run.blocking_launches:
        notes.append(BlockingLaunches())
    if tracing.wait_latency.unknown:
        notes.append(UnknownLatency(problem=tracing.wait_latency.unknown))
    if tracing.run is not None and tracing.run.driver is not None and not tracing.run.sees_waits:
        notes.append(UnseenWaits(problem=tracing.run.driver.wait_function_found))
    if tracing.run is not None:
        failed = [hook.function for hook in tracing.run.hooks if hook.how == "failed"]
        if failed:
            notes.append(UnhookedFunctions(functions=failed))
        lost = sum(process.lost for process in tracing.run.processes)
        if lost:
            notes.append(LostOperations(operations=lost))
    if tracing.locks is not None:
        most = constant("FFM_MOST_LOCK_WAITS")
        if max(Counter(tracing.locks.process).values(), default=0) >= most:
            notes.append(FirstLockWaits(waits=most))
    return notes
