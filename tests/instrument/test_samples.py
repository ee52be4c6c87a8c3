"""Reading samples of a recording, whole and damaged."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from ffm.instrument.recording.chunks import DamageError
from ffm.instrument.recording.layout import constant, record_type
from ffm.instrument.recording.samples import Samples, decode_samples

TIME = 1_000_000


def sample(operation: int, nanoseconds: int, frames: list[tuple[int, int]], lines: tuple[int, ...] = ()) -> bytes:
    head = np.zeros(1, record_type("ffm_sample"))
    head["time"], head["operation"], head["nanoseconds"] = TIME, operation, nanoseconds
    head["frames"], head["python_frames"] = len(frames), len(lines)
    native = np.zeros(len(frames), record_type("ffm_frame"))
    for place, (module, offset) in enumerate(frames):
        native[place]["module"], native[place]["offset"] = module, offset
    python = np.zeros(len(lines), record_type("ffm_python_frame"))
    python["line"] = lines
    return head.tobytes() + native.tobytes() + python.tobytes()


def decode(content: bytes, *, thread: int = 0) -> Samples:
    header: dict[str, Any] = {"kind": constant("FFM_CHUNK_SAMPLES"), "thread": thread}
    data: NDArray[np.uint8] = np.frombuffer(content, np.uint8)
    return decode_samples([(header, data)], {}, modules=2, threads=1)


def test_equal_stacks_are_one() -> None:
    none = constant("FFM_NO_MODULE")
    content = sample(3, 10, [(1, 5), (0, 7)]) + sample(3, 20, [(1, 5), (0, 7)]) + sample(4, 30, [(none, 9)], (11, 12))
    found = decode(content)
    assert found.operation.tolist() == [3, 3, 4]
    assert found.nanoseconds.tolist() == [10, 20, 30]
    assert found.stack.tolist() == [0, 0, 1]
    assert found.stacks[0].frames == [(1, 5), (0, 7)]
    assert found.stacks[1].frames == [(None, 9)]
    assert [frame.line for frame in found.stacks[1].python] == [11, 12]


@pytest.mark.parametrize(
    ("content", "thread", "flaw"),
    [
        (sample(0, 1, [(0, 1)])[:-1], 0, "cut"),
        (sample(0, 1, [])[:-1], 0, "cut"),
        (sample(0, 1, [(2, 1)]), 0, "module 2 of 2"),
        (sample(0, 1, []), 1, "thread 1 of 1"),
        (sample(0, 1 << 61, []), 0, "longer"),
    ],
)
def test_what_is_damaged_is_refused(content: bytes, thread: int, flaw: str) -> None:
    with pytest.raises(DamageError, match=flaw):
        decode(content, thread=thread)
