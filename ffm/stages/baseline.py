"""Stage 1 (dissertation 4.1): the program's wall time, and which driver functions wait, from where.

Only the driver's internal wait function is hooked, and the functions that create contexts, whose waits are not
recorded. If the wait function is unknown, the public synchronizations are hooked instead, and the document says so
(`Driver.wait_function`).
"""

from __future__ import annotations

import functools
from collections import defaultdict
from dataclasses import replace
from pathlib import Path

from ffm.driver.analysis import DriverAnalysis, analyse_driver
from ffm.driver.catalogue import load_catalogue
from ffm.driver.library import DriverFileError
from ffm.driver.vocabulary import Kind
from ffm.errors import ProgramError
from ffm.evidence.operations import function_name, operation_columns
from ffm.evidence.stack_table import StackTable
from ffm.results.documents.files import write_document
from ffm.results.documents.measured import Baseline, WaitingCall
from ffm.results.documents.run import Driver
from ffm.results.documents.stacks import Module, Stack
from ffm.results.folder.output import where_output
from ffm.results.vocabulary import PRIVATE
from ffm.stages.measure import Measurement, Request, measure, require_sound
from ffm.stages.tracing import context_makers

WORK = (
    Kind.SYNCHRONIZATION,
    Kind.TRANSFER,
    Kind.SET,
    Kind.ALLOCATION,
    Kind.LAUNCH,
    Kind.MODULE,
    Kind.GRAPH,
    Kind.STREAM,
    Kind.EVENT,
)
"""Calls of programs that use a GPU."""

RESULTS = {
    1: "CUDA_ERROR_INVALID_VALUE",
    2: "CUDA_ERROR_OUT_OF_MEMORY",
    3: "CUDA_ERROR_NOT_INITIALIZED",
    100: "CUDA_ERROR_NO_DEVICE",
    101: "CUDA_ERROR_INVALID_DEVICE",
    201: "CUDA_ERROR_INVALID_CONTEXT",
    209: "CUDA_ERROR_NO_BINARY_FOR_GPU",
    218: "CUDA_ERROR_INVALID_PTX",
    222: "CUDA_ERROR_UNSUPPORTED_PTX_VERSION",
    801: "CUDA_ERROR_NOT_SUPPORTED",
    803: "CUDA_ERROR_SYSTEM_DRIVER_MISMATCH",
    999: "CUDA_ERROR_UNKNOWN",
}
"""Names in `cuda.h` of errors that end all use of a GPU."""


def run_baseline(request: Request) -> Baseline:
    """Run the program with the wait function hooked, and write `baseline.json`.

    Raises:
        ProgramError: The program could not be measured, or failed.
    """
    makers = context_makers()
    measured = measure("baseline", request, on={}, functions=makers)
    driver = measured.run.driver
    if driver is not None and driver.wait_function is None and driver.path:
        # Nothing was hooked: time the public calls instead.
        functions = [function.name for function in load_catalogue().of_kind(Kind.SYNCHRONIZATION)]
        measured = measure("baseline", request, on={}, functions=[*functions, *makers])
    if not any(len(recording.operations) for recording in measured.recordings):
        measured = _with_work(measured, request)
    stacks = StackTable()
    columns = operation_columns(measured.recordings, stacks)
    names = _Functions(measured.run.driver, stacks)
    totals: dict[tuple[int, int], list[float]] = defaultdict(lambda: [0, 0.0])
    waits = columns["wait"] if columns["wait"].any() else columns["duration"]
    for function, stack, wait in zip(
        columns["function"].tolist(), columns["stack"].tolist(), waits.tolist(), strict=True
    ):
        total = totals[function, stack]
        total[0] += 1
        total[1] += wait / 1e9
    calls = [
        WaitingCall(function=names.of(function_name(function), stack), stack=stack, count=int(count), wait_s=wait)
        for (function, stack), (count, wait) in totals.items()
    ]
    calls.sort(key=lambda call: -call.wait_s)
    by_function: dict[str, float] = defaultdict(float)
    for call in calls:
        by_function[call.function] += call.wait_s
    document = Baseline(
        runs=measured.runs,
        run=measured.run,
        modules=stacks.modules,
        stacks=stacks.stacks,
        waits=calls,
        functions=sorted(by_function.keys() - {PRIVATE}, key=lambda name: -by_function[name]),
    )
    document = write_document(document, request.folder.document("baseline"), own=True)
    require_sound(measured.run, request)
    return document


def _with_work(bare: Measurement, request: Request) -> Measurement:
    """Return a run in which nothing waited, once a second run has shown that there is still work for the GPU.

    Raises:
        ProgramError: There is none, or no call succeeded; says which was the first that failed.
    """
    require_sound(bare.run, request)
    functions = [function.name for function in load_catalogue().of_kind(*WORK)]
    traced = measure("baseline", request, on={}, functions=[*functions, *context_makers()])
    calls = [
        (int(row["start"]), int(row["result"]), int(row["function"]))
        for recording in traced.recordings
        for row in recording.operations
    ]
    program = request.command[0]
    if any(result == 0 for _, result, _ in calls):
        return replace(bare, runs=traced.runs)
    if not calls:
        raise ProgramError(
            f"{program} loaded a CUDA driver but did not use the GPU: it allocated, copied and launched nothing. There "
            f"is nothing to measure. {where_output(request.folder.output('baseline'))}"
        )
    _, result, function = min(calls)
    raise ProgramError(
        f"No call of {program} to the driver succeeded. The first of {len(calls)}, {function_name(function)}, answered "
        f"{RESULTS.get(result, 'the error')} ({result}). There is nothing to measure. "
        f"{where_output(request.folder.output('baseline'))}"
    )


class _Functions:
    """Names the public driver function around a wait from the driver's frames of its stack.

    An export is a stub that jumps to its implementation, so it never appears on the stack itself. The outermost frame
    in the driver does, and the driver's analysis knows which export it implements.
    """

    def __init__(self, driver: Driver | None, stacks: StackTable) -> None:
        self._stacks: list[Stack] = stacks.stacks
        self._modules: list[Module] = stacks.modules
        self._path = None if driver is None else Path(driver.path)
        self._names: dict[int, str] = {}

    @functools.cached_property
    def _analysis(self) -> DriverAnalysis | None:
        """The analysis of the driver, which is large; None if there is none."""
        try:
            return None if self._path is None else analyse_driver(self._path)
        except (DriverFileError, OSError):
            return None

    @functools.cached_property
    def _of_driver(self) -> frozenset[int]:
        """The modules that are the driver's file, by their numbers."""
        real = None if self._path is None else self._path.resolve()
        return frozenset(number for number, module in enumerate(self._modules) if Path(module.path).resolve() == real)

    def _name_at(self, address: int) -> str:
        """Return an export that has code at an address of the driver. A million stacks have few of these."""
        if address not in self._names:
            names = () if self._analysis is None else self._analysis.names_at(address)
            self._names[address] = names[0] if names else PRIVATE
        return self._names[address]

    def of(self, recorded: str, stack: int) -> str:
        """Return the public function; `private` if the stack shows none."""
        if recorded != PRIVATE or self._analysis is None:
            return recorded
        name = PRIVATE
        for depth, frame in enumerate(self._stacks[stack].frames):
            if frame.module not in self._of_driver:
                break
            name = self._name_at(frame.offset - (depth > 0))
        return name
