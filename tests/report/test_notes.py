"""Each note has words, on which no stored result depends."""

from __future__ import annotations

from typing import Any, get_args

import msgspec
from hypothesis import given
from hypothesis import strategies as st

from ffm.report.notes import NO_LINES, sentence, unknown_lines
from ffm.results.documents.fields import Count, Number, Seconds
from ffm.results.documents.notes import AnyNote, CostlyTracing, NoLines, Note, OtherModule, UnfinishedCalls
from tests.report.sample_analysis import sample_analysis

KINDS = get_args(AnyNote)


def test_a_program_without_any_source_line_is_told_how_to_get_them() -> None:
    analysis = sample_analysis()
    assert unknown_lines(analysis) == ""
    stacks = [
        msgspec.structs.replace(
            stack, frames=[msgspec.structs.replace(frame, file="", line=0) for frame in stack.frames]
        )
        for stack in analysis.stacks
    ]
    stripped = msgspec.structs.replace(analysis, stacks=stacks)
    assert "als has no debug information" in unknown_lines(stripped) and "-g" in unknown_lines(stripped)
    assert unknown_lines(msgspec.structs.replace(stripped, origin="nsys")) == ""


def test_every_kind_of_note_can_be_stored() -> None:
    assert set(KINDS) == set(Note.__subclasses__())


VALUES: dict[object, st.SearchStrategy[Any]] = {
    str: st.text(),
    Count: st.integers(0, 1 << 60),
    Number: st.integers(0, 0x7FFFFFFF),
    Seconds: st.floats(0, 1e9),
    bool: st.booleans(),
    list[str]: st.lists(st.text()),
    list[Number]: st.lists(st.integers(0, 0x7FFFFFFF)),
}


def notes_of(kind: type[Note]) -> st.SearchStrategy[Note]:
    """Notes with any values that a file may hold."""
    values = {one.name: VALUES.get(one.type, st.nothing()) for one in msgspec.structs.fields(kind)}
    if kind is CostlyTracing:
        values["times"] = st.floats(0, 1e9)
    if kind is NoLines:
        values["profiler"] = st.sampled_from(sorted(NO_LINES))
    return st.builds(kind, **values)


@given(st.one_of(*map(notes_of, KINDS)))
def test_every_note_is_a_sentence_before_and_after_it_was_stored(note: Note) -> None:
    words = sentence(note)
    assert words.endswith(".") and words == sentence(msgspec.json.decode(msgspec.json.encode(note), type=AnyNote))


def test_figures_and_names_are_in_the_words() -> None:
    words = sentence(UnfinishedCalls(stage="tracing", calls=12345))
    assert "tracing run" in words and "12,345" in words
    words = sentence(OtherModule(path="/lib/libals.so", build_id="", recorded="ab12"))
    assert words.startswith("/lib/libals.so is not") and "(build-id none, recorded ab12)" in words
