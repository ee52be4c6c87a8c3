"""What a reader of results must know about how they were measured."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np

from ffm.driver.catalogue import Kind, load_catalogue
from ffm.instrument.session.cut import POLITE_S
from ffm.results.columnar.columns import Columns
from ffm.results.documents.document import Document
from ffm.results.documents.measured import Baseline, Memory, Tracing
from ffm.results.documents.stacks import Stack
from ffm.results.estimates import COSTLY_TRACING, comparable_s, spans_compare

WORTH_SAYING = 0.02
"""Share of the run: a smaller uncertainty of its time is not worth a note."""


def unrecorded_notes(documents: Iterable[Document]) -> list[str]:
    """Return a sentence for each run in which processes ended before they could record anything."""
    return [
        f"Processes that ended in the {run.stage} run before their recording began, and so before they could call the "
        f"driver: {run.unrecorded:,}. The results leave them out."
        for run in (document.run for document in documents)
        if run is not None and run.unrecorded
    ]


def cut_notes(documents: Iterable[Document]) -> list[str]:
    """Return sentences on each run that ffm ended: the calls left out, and whether the program had to be killed."""
    notes: list[str] = []
    for run in (document.run for document in documents):
        if run is None or run.status.cut is None:
            continue
        if unfinished := sum(process.unfinished for process in run.processes):
            notes.append(
                f"In the {run.stage} run, driver calls that had begun when the recording was ended, and returned "
                f"later: {unfinished:,}. The results leave them out."
            )
        if run.status.signal == "SIGKILL":
            notes.append(
                f"The program did not end within {POLITE_S:g} s when it was asked to in the {run.stage} run (SIGTERM), "
                "and was killed."
            )
    return notes


def ordinary_memory_notes(memory: Memory) -> list[str]:
    """Return a sentence if a kernel received what may be the address of ordinary memory, which ended the watch."""
    if memory.run is None or not any(process.ordinary_memory for process in memory.run.processes):
        return []
    return [
        "A kernel received what may be the address of ordinary host memory, which this GPU can use: from then on "
        "every wait counts as required. The value may also be a stale pointer in struct padding. If the "
        "program's kernels use only device, pinned and managed memory, run `ffm stage memory` with "
        "--no-ordinary-memory, then sync-use and analysis."
    ]


def host_function_notes(columns: Columns) -> list[str]:
    """Return a sentence if streams call host functions, because waiting for one of those needs no driver."""
    kinds = [function.index for function in load_catalogue().of_kind(Kind.HOST_FUNCTION)]
    calls = int(np.isin(columns["function"], kinds).sum())
    if not calls:
        return []
    return [
        f"Streams call host functions ({calls:,} were enqueued). If the program waits for one of them with its own "
        "lock, as XLA does for JAX, that is not a driver call: such waits are not observed."
    ]


def stack_notes(stacks: Sequence[Stack], columns: Columns) -> list[str]:
    """Return sentences if operations are known by the inner frames of their stack only, or not even by these."""
    cut = _operations_at([stack.truncated and bool(stack.frames) for stack in stacks], columns)
    unknown = _operations_at([not stack.frames for stack in stacks], columns)
    total = f"{len(columns['stack']):,}"
    notes: list[str] = []
    if cut:
        notes.append(
            f"{cut:,} of {total} operations are known by the inner frames of their call stack only, because it was too "
            "deep or the program has too many different ones: operations with the same inner frames count as one place."
        )
    if unknown:
        notes.append(
            f"{unknown:,} of {total} operations have no known call stack and count as one place, because the program "
            "has more than a million different ones, or because theirs could not be read."
        )
    return notes


def _operations_at(chosen: list[bool], columns: Columns) -> int:
    """Return how many operations have one of the chosen stacks."""
    return int(np.array(chosen, np.bool_)[columns["stack"]].sum()) if chosen else 0


def measurement_notes(baseline: Baseline, tracing: Tracing) -> list[str]:
    """Return a sentence for each thing that could not be measured as it should."""
    notes: list[str] = []
    run = baseline.run
    if run is not None and run.held_beside_s > WORTH_SAYING * run.wall_s:
        notes.append(
            f"The run's {run.wall_s:.2f} s exclude {run.preparation_s:.2f} s in which processes were held to be "
            f"hooked. In {run.held_beside_s:.2f} s of these, other processes were free: if they did not wait for the "
            "held ones, the run took up to that much longer."
        )
    if run is not None and tracing.run is not None:
        bare_s, traced_s = comparable_s(run, tracing.run)
        if traced_s > COSTLY_TRACING * bare_s > 0:
            between = " from its first waits to the last" if spans_compare(run, tracing.run) else ""
            notes.append(
                f"Stage 2 took {traced_s / bare_s:.1f} times the program's time{between}. What the probes took is "
                "subtracted, but they also disturb caches and other threads: the intervals of all estimates are wider."
            )
    return notes + tracing_notes(tracing)


def tracing_notes(tracing: Tracing) -> list[str]:
    """Return a sentence for each thing that tracing could not measure as it should."""
    notes: list[str] = []
    if tracing.wait_latency.unknown:
        notes.append(
            f"The latency of a wait beyond the GPU's work could not be measured on this machine "
            f"({tracing.wait_latency.unknown}): unless events timed the GPU, a whole wait counts as its work, and "
            "removing the wait seems to save less than it does."
        )
    if tracing.run is not None and tracing.run.driver is not None and not tracing.run.sees_waits:
        notes.append(
            f"The driver's internal wait function is unknown ({tracing.run.driver.wait_function_found}). So only "
            "synchronizations are judged, and calls that CUDA documents to wait, such as cudaFree and cudaMemcpy, are "
            "taken to wait for as long as they last. `ffm doctor` searches for the function again."
        )
    if tracing.run is not None:
        failed = [hook.function for hook in tracing.run.hooks if hook.how == "failed"]
        if failed:
            notes.append(f"{len(failed)} driver functions could not be hooked: {', '.join(failed[:5])}.")
        lost = sum(process.lost for process in tracing.run.processes)
        if lost:
            notes.append(f"{lost} operations were not recorded because the disk was full.")
    return notes
