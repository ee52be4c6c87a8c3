"""The real agent and collector in a process that loads NVIDIA's own driver, on a machine without a GPU."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from ffm.doctor.examination import HOOKED, Examination, examine_driver
from ffm.doctor.trial import try_all
from ffm.driver.analysis import analyse
from ffm.driver.library import read_library
from tests.driver.hooked_calls import CATALOGUE, HERE, check_answers, instrumented
from tests.driver.real_drivers import DRIVERS, fetched_only

pytestmark = fetched_only

TOO_SHORT = {"cuMemGetAttribute", "cuMemGetAttribute_v2"}
"""Six bytes long; no stage needs them."""

MOST_CANDIDATES = 1500
"""Functions that all waiting calls reach: from 255 (555) to 919 (450), of more than 10,000."""


def test_every_export_of_the_catalogue_is_hooked(driver: Path) -> None:
    found: Examination = examine_driver(str(driver))
    exports = read_library(driver).exports
    assert {hook.function for hook in found.hooks} == {name for name in exports if name in CATALOGUE}
    assert {hook.how for hook in found.hooks} <= HOOKED
    assert found.unknown_exports == ()
    assert found.unknown_entry_points == ()
    assert found.release in driver.name
    assert found.initialised == 100
    if "cuGetProcAddress" in exports:
        assert len(found.entry_points) > 800
        assert found.recorded > 10_000


def test_every_export_can_be_hooked_or_is_known_to_be_too_short(driver: Path) -> None:
    trials = try_all(driver)
    assert len(trials) > 400
    odd = {name for trial in trials for name in trial.names if trial.how != "replace-fast"}
    # Functions of the debugger's interface, in old builds, start with a jump.
    assert {name for name in odd if not name.startswith("cudbg")} <= TOO_SHORT
    assert all(trial.how != "failed" and trial.reason for trial in trials if trial.how != "replace-fast")


@pytest.mark.parametrize("mode", [0, 3], ids=["tracing", "memory"])
def test_calls_through_the_hooks_answer_what_the_bare_driver_answers(driver: Path, tmp_path: Path, mode: int) -> None:
    assert "cuInit 100" in check_answers(driver, tmp_path, mode)


def test_what_the_driver_writes_by_is_seen(driver: Path, tmp_path: Path) -> None:
    outcome = instrumented([sys.executable, str(HERE / "writing_imports.py"), str(driver)], tmp_path, mode=3)
    output = (tmp_path / "output").read_text()
    assert str(outcome.ending) == "exited with code 0", output
    leads = dict(line.split() for line in output.splitlines())
    assert {"printf", "vfprintf", "fwrite", "fputs", "puts", "write"} <= set(leads)
    assert set(leads.values()) == {"libffm_collector.so"}


def test_the_static_search_gives_few_functions_and_always_the_same(driver: Path) -> None:
    first, again = analyse(read_library(driver)), analyse(read_library(driver))
    assert first == again
    assert 0 < len(first.candidates) < MOST_CANDIDATES


def test_the_collector_survives_loading_and_unloading(driver: Path, tmp_path: Path) -> None:
    outcome = instrumented(
        [sys.executable, str(HERE / "load_and_unload.py"), "3", str(driver)],
        tmp_path,
    )
    output = (tmp_path / "output").read_text()
    assert str(outcome.ending) == "exited with code 0", output
    assert output.split() == ["100"] * 3


def test_several_drivers_in_one_process_do_not_confuse_the_collector(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("LD_LIBRARY_PATH", ":".join(str(path.parent) for path in DRIVERS))
    outcome = instrumented(
        [sys.executable, str(HERE / "load_and_unload.py"), "2", *map(str, DRIVERS)],
        tmp_path,
    )
    output = (tmp_path / "output").read_text()
    assert str(outcome.ending) == "exited with code 0", output
    assert output.split() == ["100"] * 2 * len(DRIVERS)
