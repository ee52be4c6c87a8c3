"""Who reads a clock, and with which other reads it can be compared."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import numpy as np
import pytest

from ffm.evidence.clock_reads import clocks_of
from ffm.instrument.recording.layout import constant, record_type
from ffm.instrument.recording.names import RecordedModule
from ffm.instrument.recording.reader import Recording
from ffm.instrument.recording.stacks import RecordedPythonFrame, RecordedStack
from ffm.model.necessity.program import Comparison

PROGRAM = "/home/user/program"
NO_WAITS = np.empty(0, np.int64)
ASKED = "FFM_ACCESS_ASKED"


def recording(*reads: tuple[int, list[str], str], executable: str = PROGRAM, script: str = "") -> Recording:
    """Reads at a time by a stack of files, innermost first, with a flag; `script` is the innermost Python frame."""
    paths = sorted({path for _, stack, _ in reads for path in stack})
    accesses = np.zeros(len(reads), record_type("ffm_access"))
    accesses["kind"] = constant("FFM_ACCESS_CLOCK")
    accesses["time"] = [time for time, _, _ in reads]
    accesses["stack"] = np.arange(len(reads))
    accesses["flags"] = [constant(flag) if flag else 0 for _, _, flag in reads]
    python = [RecordedPythonFrame("step", script, 1, 1, False)] if script else []
    stacks = [RecordedStack("", [(paths.index(path), 0) for path in stack], python) for _, stack, _ in reads]
    modules = [RecordedModule(path, "", 0) for path in paths]
    found = SimpleNamespace(accesses=accesses, stacks=stacks, modules=modules, executable=executable, path=Path())
    return cast(Recording, cast(Any, found))


def comparisons(of: Recording, waits: np.ndarray[Any, Any] = NO_WAITS) -> list[Comparison]:
    return [Comparison(value) for value in clocks_of(of, waits).comparison]


@pytest.mark.parametrize(
    ("stack", "expected"),
    [
        ([PROGRAM], Comparison.COMPARED),
        (["/usr/lib/libstdc++.so.6", PROGRAM], Comparison.COMPARED),
        (["/lib/libc.so.6", "/usr/lib/libgomp.so.1", PROGRAM], Comparison.COMPARED),
        (["/home/user/libtimer.so", PROGRAM], Comparison.MAYBE_COMPARED),
    ],
)
def test_the_first_that_does_not_hand_on_the_time_reads_it(stack: list[str], expected: Comparison) -> None:
    assert comparisons(recording((1, stack, ""), (9, stack, ""))) == [Comparison.NOT_COMPARED, expected]


@pytest.mark.parametrize("library", ["/usr/lib/libtorch.so", "/home/user/env/lib/python3.11/site-packages/t/lib.so"])
def test_what_an_installed_library_reads_is_for_itself(library: str) -> None:
    assert comparisons(recording((1, [library, PROGRAM], ""), (9, [library, PROGRAM], ""))) == []


@pytest.mark.parametrize(
    "library",
    ["/usr/lib/jvm/java-17/lib/server/libjvm.so", "/usr/lib/libruby-3.1.so.3.1", "/usr/lib/libluajit-5.1.so.2"],
)
def test_what_a_virtual_machine_reads_may_be_for_its_program(library: str) -> None:
    assert comparisons(recording((1, [library, PROGRAM], ""), (9, [library, PROGRAM], ""))) == [
        Comparison.NOT_COMPARED,
        Comparison.MAYBE_COMPARED,
    ]


def test_an_interpreter_reads_for_a_script_only_if_that_asks() -> None:
    stack = ["/lib/libc.so.6", "/usr/bin/python3.11"]
    for flag, script, expected in (
        (ASKED, "/home/user/train.py", [Comparison.NOT_COMPARED, Comparison.COMPARED]),
        (ASKED, "/usr/lib/python3.11/threading.py", []),
        (ASKED, "/home/user/checkout/ffm/marks.py", []),  # the program marks its iterations
        ("", "/home/user/train.py", []),
    ):
        of = recording((1, stack, flag), (9, stack, flag), executable="/usr/bin/python3.11", script=script)
        assert comparisons(of) == expected


def test_the_first_read_is_compared_with_a_later_one_if_something_waits_in_between() -> None:
    of = recording((1, [PROGRAM], ""), (9, [PROGRAM], ""))
    assert comparisons(of, np.array([5])) == [Comparison.COMPARED, Comparison.COMPARED]
    assert comparisons(of, np.array([10])) == [Comparison.NOT_COMPARED, Comparison.COMPARED]
