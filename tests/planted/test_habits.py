"""Little is missed by not watching results that are always used after the same wait."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

from ffm.model.necessity.reasons import Reason
from ffm.results.columnar.tables import stored_table
from ffm.results.folder.paths import ResultsFolder
from ffm.stages.measure import Request
from ffm.stages.memory import run_memory
from ffm.stages.registry import MEASURING_STAGES
from ffm.stages.sync_use import run_sync_use
from ffm.stages.tables import FIRST_USES, SYNCHRONIZATIONS
from tests.planted.building import SECONDS, Programs
from tests.planted.labels import PROGRAMS

TURNS, ODD = 1400, 13
MISSED = TURNS // 100
"""The goal is 1 %."""
MOVED = 1
"""Of a large block, the page that is used first is watched, until it is not used once."""


@pytest.fixture(autouse=True)
def _quick_gpu(programs: Programs) -> Iterator[None]:
    """So many turns take long."""
    with programs.quick_gpu():
        yield


VARIANTS = pytest.mark.parametrize(
    ("variant", "needless", "missed"),
    [
        ("each", 0, 0),
        ("some", TURNS - ODD, 0),
        ("most", ODD, MISSED),
        ("until", TURNS // 2, MISSED),
    ],
)


@pytest.mark.parametrize("program", ["used_by_habit", "block_by_habit", "large_block_by_habit", "source_by_habit"])
@VARIANTS
def test_a_needed_wait_is_never_called_needless_and_few_needless_ones_are_missed(
    programs: Programs, tmp_path: Path, program: str, variant: str, needless: int, missed: int
) -> None:
    folder = ResultsFolder(tmp_path)
    request = Request([str(programs.executable(PROGRAMS / f"{program}.cu")), f"{variant}_often"], folder, SECONDS)
    MEASURING_STAGES["baseline"](request)
    memory = run_memory(request)
    table = stored_table(memory, "synchronizations", SYNCHRONIZATIONS, folder.root)
    (site,) = (stack for stack, count in Counter(table["stack"].tolist()).items() if count == TURNS)
    found = Counter(table["reason"][table["stack"] == site].tolist())
    unnecessary = found[Reason.NOTHING_RELIES] + found[Reason.LATER_COVERS]
    unseen = found[Reason.RESULT_USED_UNSEEN] + found[Reason.SOURCE_OVERWRITTEN_UNSEEN]
    seen = found[Reason.RESULT_USED] + found[Reason.SOURCE_OVERWRITTEN]
    assert seen + unseen + unnecessary == TURNS
    if program == "large_block_by_habit":
        missed += MOVED
    assert needless - missed <= unnecessary <= needless
    assert (unseen > 0) == (variant != "some")

    if variant == "each":
        assert unseen > TURNS // 2
        uses = stored_table(run_sync_use(request), "first_uses", FIRST_USES, folder.root)
        mine = uses["stack"] == np.bincount(uses["stack"]).argmax()
        assert np.sort(uses["occurrence"][mine]).tolist() == list(range(TURNS))
        assert (uses["first_use"][mine] >= 0).all()


@VARIANTS
def test_what_is_used_together_with_another_result_counts_as_used_with_it_and_few_waits_are_missed(
    programs: Programs, tmp_path: Path, variant: str, needless: int, missed: int
) -> None:
    folder = ResultsFolder(tmp_path)
    program = programs.executable(PROGRAMS / "together_by_habit.cu")
    request = Request([str(program), f"{variant}_often"], folder, SECONDS)
    MEASURING_STAGES["baseline"](request)
    table = stored_table(run_memory(request), "synchronizations", SYNCHRONIZATIONS, folder.root)
    reasons = [
        Counter(table["reason"][table["stack"] == stack].tolist())
        for stack, count in Counter(table["stack"].tolist()).items()
        if count == TURNS
    ]
    assert len(reasons) == 3
    unnecessary = [found[Reason.NOTHING_RELIES] + found[Reason.LATER_COVERS] for found in reasons]
    early, last, between = np.argsort(unnecessary).tolist()
    assert unnecessary[early] == 0
    assert needless - missed <= unnecessary[last] <= needless
    assert unnecessary[between] == TURNS
    assert (reasons[last][Reason.RESULT_USED_UNSEEN] > 0) == (variant != "some")
