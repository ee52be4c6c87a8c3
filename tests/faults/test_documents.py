"""Damaged results: each is refused in a sentence, or read for what it says now; nothing crashes, hangs or is absurd.

FFM_MUTATIONS says how many mutants are tried, FFM_FIRST_MUTATION with which seed they begin. `make test` tries a few,
for about 15 seconds; a seed always makes the same mutant.
"""

from __future__ import annotations

import os
from collections import Counter
from pathlib import Path

import pytest

from tests.faults.mutants import GOOD, make_results, read_mutants

MUTATIONS = int(os.environ.get("FFM_MUTATIONS", "20"))
FIRST = int(os.environ.get("FFM_FIRST_MUTATION", "0"))


@pytest.fixture(scope="module")
def results(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("results") / "als"
    make_results(folder)
    return folder


def test_damaged_results_are_refused_or_read(results: Path, capsys: pytest.CaptureFixture[str]) -> None:
    counts: Counter[str] = Counter()
    bad = []
    for outcome in read_mutants(results, FIRST, MUTATIONS):
        counts[outcome.outcome] += 1
        if outcome.outcome not in GOOD:
            bad.append(str(outcome))
    with capsys.disabled():
        print(f"\n{MUTATIONS} mutants: {', '.join(f'{count} {name}' for name, count in counts.most_common())}")
    assert not bad, "\n\n".join(bad)
