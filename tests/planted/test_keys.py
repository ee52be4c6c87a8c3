"""If the processor has memory protection keys (pkeys(7)), what one thread uses stays watched for the others."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.memory_keys import has_memory_keys
from tests.planted.building import Programs
from tests.planted.labels import Case, planted_cases
from tests.planted.measuring import answers_for

CASES = [
    case
    for case in planted_cases()
    if case.name
    in (
        "spinning_threads-spins",
        "spinning_threads-yields",
        "source_rewritten_often-spins",
        "source_rewritten_often-reads",
    )
]


@pytest.mark.skipif(not has_memory_keys(), reason="there are no memory protection keys")
@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_threads_that_spin_make_no_wait_required(case: Case, programs: Programs, tmp_path: Path) -> None:
    answers = answers_for(case, programs, tmp_path, ["pages"])
    assert "conditionally unnecessary" in {one.kind for answer in answers for one in answer.found}
