"""Every verdict has a code, and every code its words."""

from __future__ import annotations

import ast
import dataclasses
import re
from pathlib import Path
from typing import get_args

import msgspec
import pytest

import ffm
from ffm.model.necessity.reasons import Reason
from ffm.model.transfers import Repetition
from ffm.remedy import reasons
from ffm.remedy.fitness import fitness
from ffm.remedy.plan_file import Correction
from ffm.remedy.selection import plan
from ffm.report.remedies.uncorrected import why_not
from ffm.report.verdict_reasons import WORDS
from ffm.results.documents.analysis import AllocationLink, Analysis
from ffm.results.vocabulary import Because
from tests.report.sample_analysis import sample_analysis


def test_the_model_s_reasons_are_codes() -> None:
    given = {reason.name for reason in Reason if reason is not Reason.NOT_A_SYNCHRONIZATION}
    given |= {repetition.name for repetition in Repetition}
    assert given <= {because.name for because in Because}
    assert set(WORDS) == set(Because)


def correctable() -> Analysis:
    """Return an analysis with an upload to memory from cudaMallocAsync, which corrections follow."""
    analysis = sample_analysis()
    site = next(number for number, one in enumerate(analysis.sites) if one.function == "cuMemcpyHtoD_v2")
    link = AllocationLink(
        site=site,
        role="destination",
        memory="asynchronous",
        allocation=None,
        release=None,
        occurrences=analysis.sites[site].count,
    )
    return msgspec.structs.replace(analysis, allocations=[*analysis.allocations, link])


def test_other_words_change_no_result_and_no_correction(monkeypatch: pytest.MonkeyPatch) -> None:
    analysis = correctable()
    stored, planned, fitting = msgspec.json.encode(analysis), plan(analysis, list(Correction)), fitness(analysis)
    assert planned
    assert any(fit.why_not is not None for fit in fitting.values())
    for because in Because:
        monkeypatch.setitem(WORDS, because, "reworded")
    read = msgspec.json.decode(stored, type=type(analysis))
    assert msgspec.json.encode(correctable()) == stored
    assert plan(read, list(Correction)) == planned
    assert fitness(read) == fitting


@pytest.mark.parametrize("room", ["model", "evidence", "stages", "results", "remedy"])
def test_what_decides_or_stores_imports_no_words(room: str) -> None:
    """What stages store and corrections decide cannot depend on a sentence that is out of their reach."""
    for path in (Path(ffm.__file__).parent / room).rglob("*.py"):
        tree = ast.parse(path.read_text())
        imported = {node.module or "" for node in ast.walk(tree) if isinstance(node, ast.ImportFrom)}
        imported |= {name.name for node in ast.walk(tree) if isinstance(node, ast.Import) for name in node.names}
        assert not {name for name in imported if name.startswith("ffm.report")}, path


def test_every_reason_against_a_correction_has_its_words() -> None:
    seconds = {"float": 0.5, "int": 1, "bool": True, "str": "cuInit", "tuple[str, ...]": ("a", "b")}
    values = {**seconds, "Because": Because.RESULT_USED}
    told = {
        why_not(kind(**{field.name: values[str(field.type)] for field in dataclasses.fields(kind)}))
        for kind in get_args(reasons.Reason)
    }
    assert len(told) == len(get_args(reasons.Reason))
    assert not any(sentence.endswith(".") for sentence in told)


def test_corrections_hold_no_sentences() -> None:
    """`ffm.remedy` decides; the only sentences of its own are those of its errors and of its progress."""
    for path in (Path(ffm.__file__).parent / "remedy").glob("*.py"):
        tree = ast.parse(path.read_text())
        said = [node for node in ast.walk(tree) if isinstance(node, ast.Raise)]
        excused = {id(part) for node in said for part in ast.walk(node)}
        excused |= {id(node.value) for node in ast.walk(tree) if isinstance(node, ast.Expr)}
        sentences = [
            node.value
            for node in ast.walk(tree)
            if isinstance(node, ast.Constant)
            and isinstance(node.value, str)
            and id(node) not in excused
            and re.fullmatch(r"[\w ,.:;'%()-]+", node.value)
            and len(node.value.split()) > 4
        ]
        assert not sentences, path
