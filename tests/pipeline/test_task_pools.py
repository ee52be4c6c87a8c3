"""A pool whose threads share out tasks anew in each run."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from pathlib import Path

import orjson
import pytest

from ffm.remedy.correctable import can_be_skipped
from ffm.results.stored import open_results
from tests.conftest import Ffm
from tests.stage_commands import run_stages

PROGRAM = Path(__file__).parent / "programs" / "tasks.cu"
LINES = {
    name: number
    for number, line in enumerate(PROGRAM.read_text().splitlines(), 1)
    for name in ("cleared", "downloaded")
    if f"/* {name} */" in line
}


@pytest.mark.parametrize("watch", ["pages", "trace"])
def test_every_task_has_a_verdict_whichever_thread_does_it(
    ffm: Ffm, build_program: Callable[[Path], Path], tmp_path: Path, watch: str
) -> None:
    """The verdicts, and how often each was given, are those that stage 3 measured; which tasks look at what they
    downloaded is not known. A wait that no task needs is corrected.
    """
    run_stages(ffm, [build_program(PROGRAM)], tmp_path / "results", {"watch": watch})
    analysis = orjson.loads((tmp_path / "results" / "analysis.json").read_bytes())
    sites = {site["line"]: (number, site) for number, site in enumerate(analysis["sites"]) if site["synchronization"]}
    found: dict[str, Counter[str]] = {name: Counter() for name in LINES}
    for name, line in LINES.items():
        for verdict in sites[line][1]["synchronization"]:
            found[name][verdict["kind"]] += verdict["occurrences"]
    assert found == {
        "cleared": Counter({"unnecessary": 20}),
        "downloaded": Counter({"unnecessary": 40, "required": 20}),
    }
    assert analysis["matching"]["unmatched_s"] == 0
    (chance,) = analysis["matching"]["by_chance"]
    assert (chance["site"], chance["operations"], chance["of"]) == (sites[LINES["downloaded"]][0], 40, 60)
    measured = open_results(tmp_path / "results").document.sites
    skipped = {measured[sites[line][0]].line for line in LINES.values() if can_be_skipped(measured[sites[line][0]])}
    assert skipped == {LINES["cleared"]}
    screen = ffm("report", "--results", tmp_path / "results").out
    assert f"40 of 60 at site {chance['site'] + 1}" in " ".join(screen.split())
