"""Marks in the folder of a run's recordings."""

from __future__ import annotations

import pytest

from ffm.evidence import marked_iterations
from ffm.evidence.marked_iterations import _seldom
from ffm.results.documents.measured import Marked


def test_of_too_many_marks_those_of_the_seldom_names_are_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(marked_iterations, "MOST", 5)
    marked = [Marked(name=name, process=0, thread=0, begin=time, end=time) for time, name in enumerate("aabbbbcaab")]
    assert [one.name for one in _seldom(marked)] == list("aacaa")
