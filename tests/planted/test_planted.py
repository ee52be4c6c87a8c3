"""ffm gives every planted synchronization and transfer the verdict of its label, and every label is proved."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.planted.building import Programs
from tests.planted.labels import Case, planted_cases
from tests.planted.measuring import answers_for
from tests.planted.proving import disproved
from tests.planted.report import disagreements

CASES = planted_cases()


@pytest.fixture(scope="module")
def programs(tmp_path_factory: pytest.TempPathFactory) -> Programs:
    """All planted programs, compiled."""
    built = Programs(tmp_path_factory.mktemp("planted"))
    built.build_all({case.source for case in CASES})
    return built


def test_there_are_at_least_sixty_programs() -> None:
    assert len({case.source for case in CASES}) >= 60


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_labels_are_proved(case: Case, programs: Programs) -> None:
    assert disproved(case, programs) == []


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_verdicts_are_as_labelled(case: Case, programs: Programs, tmp_path: Path) -> None:
    assert disagreements(answers_for(case, programs, tmp_path / "results", "pages")) == []
