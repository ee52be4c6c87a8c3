"""The trace watch gives planted synchronizations the verdict of their label, as the page watch does.

A few cases, one for each way in which memory is used; `python -m tests.planted.run --watch trace` measures all. None of
them forks: once in about sixty runs a forked child has died of its own translation.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.planted.building import Programs
from tests.planted.labels import Case, planted_cases
from tests.planted.pool import Measurements
from tests.planted.report import disagreements

CHOSEN = (
    "access_straddles-into",
    "copy_by_string_instruction-into",
    "idle_thread_reads-heap",
    "libc_memset-source",
    "managed_read-read",
    "munmap_destination-unmapped",
    "own_fault_handler-read",
    "page_neighbour-beside",
    "thread_waits_other_reads-read",
    "upload_source_read-read",
    "upload_source_read-written",
    "vector_lanes-all",
    "write_from_destination-destination",
)
CASES = [case for case in planted_cases() if case.name in CHOSEN]


@pytest.fixture(scope="module")
def measurements(
    request: pytest.FixtureRequest, programs: Programs, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Measurements]:
    """ffm's answers for those of the chosen cases that are asked for."""
    asked = {item.name for item in request.session.items if item.path == Path(__file__)}
    cases = [case for case in CASES if f"{test_verdicts_are_as_labelled.__name__}[{case.name}]" in asked]
    programs.build_all({case.source for case in cases})
    with Measurements(cases, programs, tmp_path_factory.mktemp("trace"), ["trace"]) as measured:
        yield measured


def test_the_chosen_cases_exist() -> None:
    assert {case.name for case in CASES} == set(CHOSEN)


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_verdicts_are_as_labelled(case: Case, measurements: Measurements) -> None:
    assert disagreements(measurements.answers(case)) == []
