"""ffm gives every planted synchronization and transfer the verdict of its label, and every label is proved."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.memory_keys import has_memory_keys
from tests.planted.building import Programs
from tests.planted.labels import Case, covered, covering, planted_cases
from tests.planted.pool import Measurements
from tests.planted.proving import disproved
from tests.planted.report import disagreements

CASES = [case for case in planted_cases() if has_memory_keys() or not case.needs_keys]
SELECTED = covering(CASES)
"""`make test` measures these, and `make thorough` the others, too: each takes a second of the processor."""
of_each_case = pytest.mark.parametrize(
    "case",
    [pytest.param(case, id=case.name, marks=[] if case in SELECTED else pytest.mark.thorough) for case in CASES],
)


@pytest.fixture(scope="module")
def measurements(
    request: pytest.FixtureRequest, programs: Programs, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Measurements]:
    """The chosen programs, compiled, and ffm's answers for the cases to be measured, computed in the background."""
    chosen = {
        (item.originalname, item.callspec.params["case"])
        for item in request.session.items
        if isinstance(item, pytest.Function)
        and hasattr(item, "callspec")
        and isinstance(item.callspec.params.get("case"), Case)
    }
    programs.build_all({case.source for _, case in chosen})
    cases = [case for case in CASES if ("test_verdicts_are_as_labelled", case) in chosen]
    with Measurements(cases, programs, tmp_path_factory.mktemp("results"), ["pages"]) as measured:
        yield measured


def test_there_are_at_least_sixty_programs() -> None:
    assert len({case.source for case in CASES}) >= 60


def test_what_any_program_tries_is_measured_or_stated_by_a_program_that_is() -> None:
    tried = [covered(case) for case in CASES if not case.like and not case.needs_keys]
    assert set().union(*tried) == set().union(*map(covered, SELECTED))
    assert {case.like for case in CASES if case.like} <= {case.source.stem for case in CASES if not case.like}


# Proving is mostly waiting, so measuring continues in parallel. A label says what a program does, not what ffm does.
@pytest.mark.thorough
@pytest.mark.usefixtures("measurements")
@of_each_case
def test_labels_are_proved(case: Case, programs: Programs) -> None:
    assert disproved(case, programs) == []


@of_each_case
def test_verdicts_are_as_labelled(case: Case, measurements: Measurements) -> None:
    assert disagreements(measurements.answers(case)) == []
