"""Which queries for finished work a program relies on, and what they ask for."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest

from ffm.evidence.answers import answer_uses
from ffm.evidence.program_order import NOT_READY, operations_of
from ffm.instrument.recording.names import RecordedModule
from ffm.instrument.recording.reader import Recording
from ffm.instrument.recording.stacks import RecordedPythonFrame, RecordedStack
from ffm.model.necessity.program import Role, Uses
from tests.evidence.recorded_calls import columns_of

PROGRAM = "/home/user/program"
RUNTIME = "/usr/local/cuda/lib64/libcudart.so.12"
PACKAGES = "/home/user/env/lib/python3.11/site-packages"
BINDING = f"{PACKAGES}/libbinding.so"
PYTHON = "/usr/bin/python3.11"
SCRIPT = "/home/user/train.py"

WORK = {"function": "cuLaunchKernel", "stream": 4096}
WAIT = {"function": "cuStreamSynchronize", "stream": 4096}
ASK = {"function": "cuStreamQuery", "stream": 4096, "stack": 7}


def answers(*calls: dict[str, Any], files: tuple[str, ...] = (RUNTIME, PROGRAM), scripts: tuple[str, ...] = ()) -> Uses:
    """Find the answers of calls of one thread, all from functions in these files, innermost first."""
    columns = columns_of(*({"stack": 0, **call} for call in calls))
    python = [RecordedPythonFrame("step", script, 1, 1, False) for script in scripts]
    found = SimpleNamespace(
        operations={name: columns[name] for name in ("thread", "number", "stack")},
        stacks=[RecordedStack("", [(place, 0) for place in range(len(files))], python)] * 8,
        modules=[RecordedModule(path, "", 0) for path in files],
        executable=PROGRAM,
        path=Path(),
    )
    return answer_uses(columns, operations_of(columns), cast(Recording, cast(Any, found)))


def test_a_question_after_a_wait_is_for_the_last_work_of_its_stream() -> None:
    found = answers(WORK, WORK, {**WORK, "stream": 8192}, WAIT, ASK)
    assert (found.operation.tolist(), found.time.tolist(), found.role.tolist()) == ([1], [4_000], [Role.ANSWER])


def test_a_question_for_an_event_is_for_its_last_record() -> None:
    record = {"function": "cuEventRecord", "handle": 9, "stream": 4096}
    found = answers(WORK, record, record, WORK, {"function": "cuEventQuery", "handle": 9})
    assert found.operation.tolist() == [2]


def test_who_was_told_not_ready_at_the_same_place_is_ready_for_it() -> None:
    refused = {**ASK, "result": NOT_READY}
    assert answers(WORK, refused, WAIT, ASK).operation.tolist() == []
    assert answers(WORK, {**refused, "stack": 6}, WAIT, ASK).operation.tolist() == [0]


def test_nothing_is_relied_on_before_any_work() -> None:
    assert answers(ASK, WORK).operation.tolist() == []


@pytest.mark.parametrize(
    ("files", "scripts", "relied_on"),
    [
        ((RUNTIME, PROGRAM), (), True),
        ((RUNTIME, "/home/user/libsolver.so", PROGRAM), (), True),
        ((RUNTIME, "/usr/lib/libsolver.so", PROGRAM), (), False),
        ((BINDING, PYTHON), (SCRIPT,), True),
        ((BINDING, PYTHON), (f"{PACKAGES}/pool.py",), False),
        ((f"{PACKAGES}/pool/liballocator.so", BINDING, PYTHON), (SCRIPT,), False),
        # torch.cuda.Event.query, called by a script, and by another file of the package
        ((RUNTIME, BINDING, PYTHON), (f"{PACKAGES}/torch/cuda/streams.py", SCRIPT), True),
        ((RUNTIME, BINDING, PYTHON), (f"{PACKAGES}/torch/cuda/streams.py", f"{PACKAGES}/torch/fsdp.py", SCRIPT), False),
        # torch.cuda.Stream.query, and torch.cuda.empty_cache
        ((RUNTIME, f"{PACKAGES}/libc10_cuda.so", BINDING, PYTHON), (SCRIPT,), True),
        ((RUNTIME, *2 * [f"{PACKAGES}/libc10_cuda.so"], BINDING, PYTHON), (SCRIPT,), False),
        # cupy.cuda.Event.done, read by a script, and by the list of what pinned memory waits for
        ((f"{PACKAGES}/cupy_backends/cuda/api/runtime.so", f"{PACKAGES}/cupy/cuda/stream.so", PYTHON), (SCRIPT,), True),
        (
            (
                f"{PACKAGES}/cupy_backends/cuda/api/runtime.so",
                f"{PACKAGES}/cupy/cuda/stream.so",
                f"{PACKAGES}/cupy/cuda/pinned_memory.so",
                f"{PACKAGES}/cupy/_core/core.so",
                PYTHON,
            ),
            (SCRIPT,),
            False,
        ),
        # an Event of Numba, through ctypes
        (
            ("/usr/lib/libffi.so.8", "/usr/lib/python3.11/lib-dynload/_ctypes.so", PYTHON),
            (f"{PACKAGES}/numba/cuda/driver.py", f"{PACKAGES}/numba/cuda/driver.py", SCRIPT),
            True,
        ),
    ],
)
def test_questions_of_installed_libraries_are_for_themselves(
    files: tuple[str, ...], scripts: tuple[str, ...], relied_on: bool
) -> None:
    assert answers(WORK, WAIT, ASK, files=files, scripts=scripts).operation.tolist() == ([0] if relied_on else [])
