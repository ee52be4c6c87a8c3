"""Every verdict has a code, and every code its words."""

from __future__ import annotations

import msgspec
import pytest

from ffm.model.necessity.rules import Reason
from ffm.model.transfers import Repetition
from ffm.remedy.fitness import fitness
from ffm.remedy.selection import Remedy, plan
from ffm.results.vocabulary import WORDS, Because
from tests.report.sample_analysis import sample_analysis


def test_the_model_s_reasons_are_codes() -> None:
    given = {reason.name for reason in Reason if reason is not Reason.NOT_A_SYNCHRONIZATION}
    given |= {repetition.name for repetition in Repetition}
    assert given <= {because.name for because in Because}
    assert set(WORDS) == set(Because)


def test_other_words_change_no_result_and_no_correction(monkeypatch: pytest.MonkeyPatch) -> None:
    analysis = sample_analysis()
    stored, planned = msgspec.json.encode(analysis), plan(analysis, list(Remedy))
    fitting = {site: fit.remedies for site, fit in fitness(analysis).items()}
    assert planned
    for because in Because:
        monkeypatch.setitem(WORDS, because, "reworded")
    read = msgspec.json.decode(stored, type=type(analysis))
    assert msgspec.json.encode(sample_analysis()) == stored
    assert plan(read, list(Remedy)) == planned
    assert {site: fit.remedies for site, fit in fitness(read).items()} == fitting
