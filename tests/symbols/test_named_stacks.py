"""Python functions among native frames in the stacks of a document."""

from __future__ import annotations

from ffm.instrument.library import COLLECTOR
from ffm.results.documents.notes import AnyNote, UnjoinedPython, UnreadPython
from ffm.results.documents.run import ProcessRecord
from ffm.results.documents.stacks import Frame, Module, PythonFrame, Stack
from ffm.symbols.locations import Location, SourceFrame
from ffm.symbols.named_stacks import name_stacks, unread_python
from ffm.symbols.symbolizer import Symbolizer
from tests.measured_run import a_run

INTERPRETER, EXTENSION, PROGRAM = 0, 1, 2
MODULES = [
    Module(path="/usr/lib/libpython3.12.so.1.0", build_id="aa"),
    Module(path="/app/solver.so", build_id="bb"),
    Module(path="/app/embedding", build_id="cc"),
]
EVALUATION = "_PyEval_EvalFrameDefault"


class Names(Symbolizer):
    """Knows the functions of native frames by their offsets."""

    def __init__(self, *functions: str) -> None:
        super().__init__(use_llvm=False)
        self._functions = functions

    @property
    def notes(self) -> list[AnyNote]:
        return []

    def resolve(self, locations: list[Location]) -> list[list[SourceFrame]]:
        return [[SourceFrame(name) for name in self._functions[place.offset].split(">")] for place in locations]


def named(native: list[tuple[int, str]], python: list[tuple[str, bool]]) -> tuple[list[str], list[AnyNote]]:
    """Functions of the stack made of (module, function) and (function, is an entry), and the notes."""
    stack = Stack(
        key="k",
        frames=[Frame(module=module, offset=offset) for offset, (module, _) in enumerate(native)],
        python=[PythonFrame(function=name, file="train.py", line=3, entry=entry) for name, entry in python],
    )
    result = name_stacks([stack], MODULES, Names(*(name for _, name in native)))
    assert not result.stacks[0].python
    return [frame.function for frame in result.stacks[0].frames], result.notes


def test_the_interpreters_frames_give_way_to_the_functions_that_it_runs() -> None:
    native = [
        (EXTENSION, "launch"), (INTERPRETER, "PyObject_Vectorcall"), (INTERPRETER, EVALUATION),
        (EXTENSION, "each"), (INTERPRETER, EVALUATION), (INTERPRETER, "Py_RunMain"), (PROGRAM, "_start"),
    ]  # fmt: skip
    functions, notes = named(native, [("step", False), ("solve", True), ("<module>", True)])
    assert functions == ["launch", "step", "solve", "each", "<module>", "_start"]
    assert notes == []


def test_a_program_with_python_in_it_keeps_its_own_functions() -> None:
    native = [(PROGRAM, "launch"), (PROGRAM, EVALUATION), (PROGRAM, "main")]
    functions, _ = named(native, [("step", True)])
    assert functions == ["launch", "step", "main"]


def test_frames_that_do_not_agree_stay_apart_and_are_counted() -> None:
    native = [(EXTENSION, "launch"), (INTERPRETER, EVALUATION)]
    functions, notes = named(native, [("step", True), ("<module>", True)])
    assert functions == ["launch", EVALUATION, "step", "<module>"]
    assert notes == [UnjoinedPython(failed=1, stacks=1)]


def test_an_entry_alone_is_not_shown() -> None:
    functions, notes = named([(EXTENSION, "free"), (INTERPRETER, EVALUATION)], [("", True)])
    assert functions == ["free"]
    assert notes == []


def test_names_of_cython_are_those_of_the_source() -> None:
    functions, _ = named([(EXTENSION, "__pyx_pw_4cuda_6driver_3cuMemFree"), (PROGRAM, EVALUATION)], [("f", True)])
    assert functions == ["cuda.driver.cuMemFree", "f"]


def test_python_frames_are_marked_and_lie_in_no_file_of_the_program() -> None:
    stack = Stack(
        key="k",
        frames=[Frame(module=PROGRAM, offset=0)],
        python=[PythonFrame(function="step", file="train.py", line=3, entry=True)],
    )
    result = name_stacks([stack], MODULES, Names(EVALUATION))
    (frame,) = result.stacks[0].frames
    assert (frame.python, frame.file, frame.line) == (True, "train.py", 3)
    assert result.modules[frame.module] == Module(path="", build_id="")
    assert result.modules[: len(MODULES)] == MODULES


def test_an_interpreter_that_cannot_be_read_is_named() -> None:
    def process(python: str, readable: bool) -> ProcessRecord:
        return ProcessRecord(
            process_id=1, executable="python", rank=None, recording="r", threads=1, operations=1, lost=0,
            python=python, python_readable=readable,
        )  # fmt: skip

    run = a_run(
        processes=[process("3.15.0", False), process("3.15.0", False), process("3.12.1", True), process("", False)]
    )
    assert unread_python(run) == [UnreadPython(version="3.15.0")]
    assert unread_python(None) == []


def test_our_own_frames_are_left_out() -> None:
    """The driver's own allocation inside a traced call: the collector is between the driver and its caller."""
    modules = [Module(path="/lib/libcuda.so.1", build_id="dd"), Module(path=f"/x/{COLLECTOR}", build_id="ee")]
    stack = Stack(key="k", frames=[Frame(module=module, offset=place) for place, module in enumerate((0, 1, 1, 2))])
    result = name_stacks([stack], [*modules, MODULES[PROGRAM]], Names("mmap", "forward>ffm_call", "narrow_109", "main"))
    assert [frame.function for frame in result.stacks[0].frames] == ["mmap", "main"]
