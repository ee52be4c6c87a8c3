"""The baseline: what is the same site in another build, and what is a new one."""

from __future__ import annotations

from pathlib import Path

import msgspec
import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ffm.errors import DocumentError
from ffm.gate.baseline import VERSION, known_sites, new_sites, read_baseline, write_baseline
from ffm.gate.problems import call_site
from ffm.results.documents.analysis import Analysis
from ffm.results.documents.stacks import Frame, Module, Stack
from tests.gate.gate_calls import a_site
from tests.report.sample_analysis import sample_analysis

SITES = st.builds(
    a_site,
    st.integers(0, 50),
    st.sampled_from(["cudaFree", "cudaMemcpy"]),
    st.sampled_from(["solve", "load"]),
    st.integers(0, 3),
)


@given(st.lists(SITES, max_size=8))
def test_nothing_is_new_in_what_was_stored(sites: list) -> None:  # type: ignore[type-arg]
    assert new_sites(reversed(sites), known_sites(sites)) == ([], 0)
    assert known_sites(reversed(sites)) == known_sites(sites)


@given(st.lists(SITES, max_size=8), st.lists(SITES, max_size=8))
def test_new_and_gone_sites_account_for_the_difference(before: list, after: list) -> None:  # type: ignore[type-arg]
    new, gone = new_sites(after, known_sites(before))
    assert len(before) - gone + len(new) == len(after)


def test_another_call_in_the_same_function_is_new_at_its_line() -> None:
    before = [a_site(0, line=10), a_site(1, line=12)]
    new, gone = new_sites([a_site(0, line=11), a_site(1, line=10), a_site(2, line=12)], known_sites(before))
    assert ([site.index for site in new], gone) == ([0], 0)


def elsewhere(analysis: Analysis, *, caller: str = "") -> Analysis:
    """The same program, built in another folder, at other addresses and lines, with another runtime's version."""

    def moved(frame: Frame) -> Frame:
        name = caller if caller and frame.function.startswith("doALS") else frame.function
        return msgspec.structs.replace(
            frame,
            offset=frame.offset + 64,
            line=frame.line + 2,
            file=frame.file.replace("/src", "/ci/7"),
            function=name,
        )

    stacks = [
        Stack(key=f"{int(stack.key, 16) + 9:032x}", frames=[moved(frame) for frame in stack.frames])
        for stack in analysis.stacks
    ]
    modules = [Module(path="/ci/7/als", build_id="cc"), Module(path="/opt/libcudart.so.12", build_id="dd")]
    return msgspec.structs.replace(analysis, stacks=stacks, modules=modules)


def test_a_site_is_the_same_in_another_build() -> None:
    first, second = sample_analysis(), elsewhere(sample_analysis())
    for index in range(len(first.sites)):
        assert call_site(first, index).identity == call_site(second, index).identity


def test_a_site_that_moves_to_another_function_is_new() -> None:
    first, second = sample_analysis(), elsewhere(sample_analysis(), caller="doOther(int)")
    assert call_site(first, 0).identity != call_site(second, 0).identity


def test_what_libraries_and_their_headers_call_between_does_not_matter() -> None:
    analysis = sample_analysis()
    header = Frame(module=0, offset=1, function="std::invoke<int>", file="/usr/include/c++/14/functional", line=9)
    frames = analysis.stacks[0].frames
    through = Stack(key="e" * 32, frames=[*frames[:3], header, Frame(module=2, offset=4), *frames[3:]])
    modules = [*analysis.modules, Module(path="/usr/lib/x86_64-linux-gnu/libstdc++.so.6", build_id="")]
    other = msgspec.structs.replace(analysis, stacks=[through, *analysis.stacks[1:]], modules=modules)
    assert call_site(analysis, 0).identity == call_site(other, 0).identity


def test_the_depth_of_a_recursion_does_not_matter() -> None:
    analysis = sample_analysis()
    frames = analysis.stacks[0].frames
    deeper = Stack(key="f" * 32, frames=[*frames[:3], frames[2], frames[2], *frames[3:]])
    other = msgspec.structs.replace(analysis, stacks=[deeper, *analysis.stacks[1:]])
    assert call_site(analysis, 0).identity == call_site(other, 0).identity


def test_a_baseline_is_read_as_it_was_written(tmp_path: Path) -> None:
    file = tmp_path / "known.json"
    assert read_baseline(file) is None
    sites = [a_site(0), a_site(1, "cudaMemcpy", "load", 20, "transfer")]
    write_baseline(file, sites)
    assert read_baseline(file) == known_sites(sites)


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (b"{", "is not JSON"),
        (b"[]", "is not a baseline of `ffm check`"),
        (orjson.dumps({"format": "ffm.gate-baseline", "version": VERSION + 1}), f"has version {VERSION + 1}, but"),
        (orjson.dumps({"format": "ffm.gate-baseline", "version": VERSION, "known": [{}]}), "is not as this ffm writes"),
    ],
)
def test_another_baseline_is_refused_in_one_sentence(tmp_path: Path, content: bytes, said: str) -> None:
    file = tmp_path / "known.json"
    file.write_bytes(content)
    with pytest.raises(DocumentError, match="ffm check --update") as caught:
        read_baseline(file)
    assert said in str(caught.value)
