"""Stage 1 (dissertation 4.1): the program's wall time, and which driver functions wait, from where.

Only the driver's internal wait function is hooked. If it is unknown, the public synchronizations are hooked instead,
and the document says so (`Driver.wait_function`).
"""

from __future__ import annotations

from collections import defaultdict
from pathlib import Path

from ffm.driver.analysis import analyse_driver
from ffm.driver.catalogue import Kind, load_catalogue
from ffm.driver.library import DriverFileError
from ffm.stages.documents import Baseline, Driver, Module, Stack, WaitingCall, write_document
from ffm.stages.measure import Request, measure, require_sound
from ffm.stages.operations import PRIVATE, function_name, operation_columns
from ffm.stages.stack_table import StackTable


def run_baseline(request: Request) -> Baseline:
    """Run the program with the wait function hooked, and write `baseline.json`.

    Raises:
        ProgramError: The program could not be measured, or failed.
    """
    measured = measure("baseline", request, on={})
    driver = measured.run.driver
    if driver is not None and driver.wait_function is None and driver.path:
        # Nothing was hooked: time the public calls instead.
        functions = [function.name for function in load_catalogue().of_kind(Kind.SYNCHRONIZATION)]
        measured = measure("baseline", request, on={}, functions=functions)
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


class _Functions:
    """Names the public driver function around a wait from the driver's frames of its stack.

    An export is a stub that jumps to its implementation, so it never appears on the stack itself. The outermost frame
    in the driver does, and the driver's analysis knows which export it implements.
    """

    def __init__(self, driver: Driver | None, stacks: StackTable) -> None:
        self._stacks: list[Stack] = stacks.stacks
        self._modules: list[Module] = stacks.modules
        self._path = None if driver is None else Path(driver.path)
        self._analysis = None
        if self._path is not None:
            try:
                self._analysis = analyse_driver(self._path)
            except (DriverFileError, OSError):
                self._analysis = None

    def of(self, recorded: str, stack: int) -> str:
        """Return the public function; `private` if the stack shows none."""
        if recorded != PRIVATE or self._analysis is None or self._path is None:
            return recorded
        name = PRIVATE
        real = self._path.resolve()
        for depth, frame in enumerate(self._stacks[stack].frames):
            if Path(self._modules[frame.module].path).resolve() != real:
                break
            names = self._analysis.names_at(frame.offset - (depth > 0))
            name = names[0] if names else PRIVATE
        return name
