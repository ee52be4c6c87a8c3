"""Results that a program keeps beside what it uses all the time: few needless waits are missed, and no needed one."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import numpy as np
import pytest

from ffm.instrument.recording.layout import constant
from ffm.instrument.recording.reader import read_recordings
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

TURNS, DISTANCE = 1400, 107


def is_odd(turn: int) -> bool:
    """As `by_habit.h` has it."""
    return turn % DISTANCE == turn // DISTANCE * 29 % DISTANCE


@pytest.mark.parametrize("program", ["kept_in_array", "kept_in_blocks"])
@pytest.mark.parametrize("variant", ["some", "most", "until"])
def test_few_needless_waits_are_missed_beside_busy_data(
    programs: Programs, tmp_path: Path, program: str, variant: str
) -> None:
    folder = ResultsFolder(tmp_path)
    request = Request([str(programs.executable(PROGRAMS / f"{program}.cu")), f"{variant}_often"], folder, SECONDS)
    MEASURING_STAGES["baseline"](request)
    table = stored_table(run_memory(request), "synchronizations", SYNCHRONIZATIONS, folder.root)
    (site,) = (stack for stack, count in Counter(table["stack"].tolist()).items() if count == TURNS)
    mine = table["stack"] == site
    reason = table["reason"][mine][np.argsort(table["occurrence"][mine])]
    odd = np.array([is_odd(turn) for turn in range(TURNS)])
    needed = {"some": odd, "most": ~odd, "until": np.arange(TURNS) < TURNS // 2}[variant]
    needless = np.isin(reason, (Reason.NOTHING_RELIES, Reason.LATER_COVERS))
    assert not (needless & needed).any()
    missed = int((~needless & ~needed).sum())
    assert missed <= (TURNS // 100 if variant != "most" else int(odd.sum()))


def test_the_time_of_a_use_is_not_worth_many_steps_beside_it(programs: Programs, tmp_path: Path) -> None:
    folder = ResultsFolder(tmp_path)
    request = Request([str(programs.executable(PROGRAMS / "kept_in_array.cu")), "some_often"], folder, SECONDS)
    MEASURING_STAGES["baseline"](request)
    run_memory(request)
    uses = stored_table(run_sync_use(request), "first_uses", FIRST_USES, folder.root)
    (recording,) = read_recordings(folder.recordings("sync-use"))
    presumed = (recording.accesses["flags"] & constant("FFM_ACCESS_PRESUMED")) != 0
    assert (presumed & (recording.accesses["armed"] > 0)).any()  # had been watched
    assert not (recording.accesses["kind"] == constant("FFM_ACCESS_UNWATCHED")).any()
    assert len(uses["first_use"]) > 0
