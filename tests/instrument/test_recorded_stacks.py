"""Reading the stacks of a recording, whole and damaged."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from ffm.driver.catalogue import load_catalogue
from ffm.errors import RecordingError
from ffm.instrument.recording.chunks import Chunk, DamageError
from ffm.instrument.recording.layout import constant, record_type
from ffm.instrument.recording.reader import MAGIC, read_recording
from ffm.instrument.recording.stacks import MISSING_STACK, RecordedStacks, read_stacks


def chunk(kind: str, structure: str, rows: list[dict[str, Any]]) -> Chunk:
    table = np.zeros(len(rows), record_type(structure))
    for place, row in enumerate(rows):
        for name, value in row.items():
            table[name][place] = value
    return {"kind": constant(kind)}, table.view(np.uint8)


def read(
    stacks: list[dict[str, int]],
    frames: list[tuple[int, int, int]],
    python: Sequence[tuple[int, int, int]] = (),
    *,
    threads: int = 1,
) -> RecordedStacks:
    """Read stacks, whose frames are (next, module, offset), and (next, code, line) in Python."""
    native = [dict(zip(("next", "module", "offset"), frame, strict=True)) for frame in frames]
    functions = [dict(zip(("next", "code", "line"), frame, strict=True)) for frame in python]
    chunks = [
        chunk("FFM_CHUNK_STACKS", "ffm_stack", stacks),
        chunk("FFM_CHUNK_FRAMES", "ffm_chained_frame", native),
        chunk("FFM_CHUNK_PYTHON_FRAMES", "ffm_chained_python_frame", functions),
    ]
    return read_stacks(chunks, {5: ("a.py", "f")}, threads=threads)


def test_frames_are_those_of_both_chains_innermost_first() -> None:
    none = constant("FFM_NO_MODULE")
    inner = [(0, 0, 10), (1, 1, 11), (2, none, 12)]
    outer = [(0, 0, 20), (4, 0, 21)]
    stacks = [{"number": 0}, {"number": 1, "inner": 3, "outer": 5}, {"number": 2, "inner": 2, "truncated": 1}]
    found = read(stacks, inner + outer)
    assert [stack.frames for stack in found] == [
        [],
        [(0, 10), (1, 11), (None, 12), (0, 21), (0, 20)],
        [(0, 10), (1, 11)],
    ]
    assert [stack.truncated for stack in found] == [False, False, True]


def test_functions_in_python_are_chains_of_their_own() -> None:
    entry = 1 << constant("FFM_COLUMN_BITS")
    (stack,) = read([{"number": 0, "python_inner": 2, "python_outer": 3}], [], [(0, 5, 1), (1, 6, 2), (0, 5, 3)])
    assert [(frame.file, frame.function, frame.line) for frame in stack.python] == [
        ("a.py", "f", 1),
        ("", "", 2),
        ("a.py", "f", 3),
    ]
    chunks = [
        chunk("FFM_CHUNK_STACKS", "ffm_stack", [{"number": 0, "python_inner": 1}]),
        chunk("FFM_CHUNK_PYTHON_FRAMES", "ffm_chained_python_frame", [{"code": 5, "column": entry | 7}]),
    ]
    ((frame,),) = [stack.python for stack in read_stacks(chunks, {}, threads=1)]
    assert frame.entry and frame.column == 7


def test_a_stack_that_was_not_written_has_no_frames() -> None:
    assert read([{"number": 1, "inner": 1}], [(0, 0, 1)])[0] == MISSING_STACK


@pytest.mark.parametrize(
    ("stacks", "frames", "flaw"),
    [
        ([{"number": 2}], [], "of 3 stacks"),
        ([{"number": 0, "inner": 2}], [(0, 0, 1)], "frame 2 of 1"),
        ([{"number": 0, "outer": 1}], [], "frame 1 of 0"),
        ([], [(1, 0, 1)], "comes before"),
        ([], [(place, 0, 1) for place in range(193)], "more than 192"),
    ],
)
def test_what_is_damaged_is_refused(
    stacks: list[dict[str, int]], frames: list[tuple[int, int, int]], flaw: str
) -> None:
    with pytest.raises(DamageError, match=flaw):
        read(stacks, frames)


def test_numbers_that_no_process_can_give_are_refused_whatever_the_threads() -> None:
    with pytest.raises(DamageError, match="stacks"):
        read([{"number": 1 << 31}], [], threads=1 << 32)


def test_the_longest_chain_is_read() -> None:
    found = read([{"number": 0, "outer": 192}], [(place, 0, place) for place in range(192)])
    assert len(found[0].frames) == 192


def recording(path: Path, chunks: list[Chunk], lost: int) -> Path:
    """Write a recording of one thread."""
    parts = [np.zeros(1, record_type("ffm_chunk")) for _ in chunks]
    for part, (head, content) in zip(parts, chunks, strict=True):
        part["kind"], part["capacity"], part["used"] = head["kind"], part.nbytes + content.nbytes, content.nbytes
    header = np.zeros(1, record_type("ffm_header"))
    header["magic"], header["version"], header["threads"] = MAGIC, constant("FFM_VERSION"), 1
    header["catalogue_digest"], header["lost"] = load_catalogue().digest, lost
    body = b"".join(part.tobytes() + content.tobytes() for part, (_, content) in zip(parts, chunks, strict=True))
    header["file_bytes"] = constant("FFM_HEADER_BYTES") + len(body)
    path.write_bytes(header.tobytes().ljust(constant("FFM_HEADER_BYTES"), b"\0") + body)
    return path


def test_what_a_full_disk_left_of_stacks_is_not_taken_for_damage(tmp_path: Path) -> None:
    without_frames = [chunk("FFM_CHUNK_STACKS", "ffm_stack", [{"number": 0, "inner": 3}])]
    with pytest.raises(RecordingError, match="edited or truncated"):
        read_recording(recording(tmp_path / "damaged", without_frames, lost=0))
    cut = read_recording(recording(tmp_path / "cut", without_frames, lost=7))
    assert (cut.lost, len(cut.stacks)) == (7, 0)
