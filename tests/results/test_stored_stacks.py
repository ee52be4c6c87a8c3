"""Call stacks in the files of documents: what they have in common is there once."""

from __future__ import annotations

from typing import Any

import msgspec
import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ffm.results.documents.stacks import INNER_FRAMES, Frame, PythonFrame, Stack, stored_stacks, taken_stacks

FRAMES = st.builds(
    Frame,
    module=st.integers(0, 2),
    offset=st.integers(0, 9),
    function=st.sampled_from(["", "solve"]),
    inlined=st.booleans(),
)
PYTHON_FRAMES = st.builds(
    PythonFrame, function=st.just("f"), file=st.just("a.py"), line=st.just(3), entry=st.booleans()
)
STACKS = st.builds(
    Stack,
    key=st.text("0123456789abcdef", min_size=32, max_size=32),
    frames=st.lists(FRAMES, max_size=3 * INNER_FRAMES),
    python=st.lists(PYTHON_FRAMES, max_size=2),
    truncated=st.booleans(),
)


def in_file(stacks: list[Stack]) -> dict[str, Any]:
    content: dict[str, Any] = orjson.loads(orjson.dumps(stored_stacks(stacks)))
    return content


@given(st.lists(STACKS, max_size=5))
def test_stacks_come_back_as_they_were_with_each_frame_and_chain_once(stacks: list[Stack]) -> None:
    content = in_file(stacks)
    frames = [msgspec.convert(frame, Frame) for frame in content["frames"]]
    assert set(frames) == {frame for stack in stacks for frame in stack.frames} and len(set(frames)) == len(frames)
    assert len({tuple(chain) for chain in content["chains"]}) == len(content["chains"])
    assert taken_stacks(content) == stacks


def test_the_leaves_of_a_search_share_their_inner_frames_and_the_others() -> None:
    inner = [[Frame(module=0, offset=100 * way + place) for place in range(INNER_FRAMES)] for way in range(30)]
    outer = [[Frame(module=1, offset=100 * way + place) for place in range(20)] for way in range(30)]
    keys = (f"{number:032x}" for number in range(900))
    stacks = [Stack(key=next(keys), frames=one + other) for one in inner for other in outer]
    content = in_file(stacks)
    assert len(content["chains"]) == 30 + 30
    assert taken_stacks(content) == stacks


@pytest.mark.parametrize(
    ("chains", "of_stack", "flaw"),
    [([[1]], [0], "names a frame"), ([[-1]], [0], "names a frame"), ([[0]], [1], "names a chain")],
)
def test_numbers_of_nothing_are_refused(chains: list[list[int]], of_stack: list[int], flaw: str) -> None:
    content = {
        "frames": [{"module": 0, "offset": 1}],
        "chains": chains,
        "stacks": [{"key": "0" * 32, "chains": of_stack}],
    }
    with pytest.raises(ValueError, match=flaw):
        taken_stacks(content)
