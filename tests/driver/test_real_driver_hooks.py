"""The real agent and collector in a process that loads NVIDIA's own driver, on a machine without a GPU."""

from __future__ import annotations

import functools
import sys
import tempfile
from pathlib import Path
from subprocess import run

import pytest
from real_drivers import DRIVERS, EACH_DRIVER, fetched_only

from ffm.doctor.examination import HOOKED, Examination, examine_driver
from ffm.doctor.trial import try_all
from ffm.driver.analysis import analyse
from ffm.driver.catalogue import load_catalogue
from ffm.driver.library import read_library
from ffm.instrument.recording.reader import read_recordings
from ffm.instrument.session.instruments import Instruments
from ffm.instrument.session.runner import Outcome, run_instrumented

pytestmark = fetched_only

CATALOGUE = load_catalogue()
HERE = Path(__file__).parent
SECONDS = 60.0

TOO_SHORT = {"cuMemGetAttribute", "cuMemGetAttribute_v2"}
"""Six bytes long; no stage needs them."""

MOST_CANDIDATES = 1500
"""Functions that all waiting calls reach: from 255 (555) to 919 (450), of more than 10,000."""


class NoWait:
    offsets: tuple[int, ...] = ()


@pytest.fixture(params=EACH_DRIVER)
def driver(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Path:
    path: Path = request.param
    # The oldest build needs a library that is next to it.
    monkeypatch.setenv("LD_LIBRARY_PATH", str(path.parent))
    return path


def instrumented(command: list[str], folder: Path, mode: int = 0) -> Outcome:
    recordings = folder / "recordings"
    recordings.mkdir()
    names = [function.name for function in CATALOGUE.functions]
    instruments = Instruments(recordings, names, mode, None, lambda _driver: NoWait())
    return run_instrumented(command, instruments, output=folder / "output", timeout_s=SECONDS)


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
    hooked = tmp_path / "hooked"
    skipped, expected = call_bare(driver)
    command = [sys.executable, str(HERE / "call_everything.py"), str(driver), str(hooked), ",".join(skipped)]
    outcome = instrumented(command, tmp_path, mode)
    assert str(outcome.ending) == "exited with code 0", (tmp_path / "output").read_text()
    answers = hooked.read_text()
    assert answers == expected
    assert "cuInit 100" in answers
    calls = [line.partition(" ")[0] for line in answers.splitlines()]
    assert len(calls) > 800
    unrecorded = {function.name for function in CATALOGUE.functions if function.makes_context}
    (recording,) = read_recordings(tmp_path / "recordings")
    assert len(recording.operations) == sum(unrecorded.isdisjoint(call.split(":")) for call in calls)


def test_what_the_driver_writes_by_is_seen(driver: Path, tmp_path: Path) -> None:
    outcome = instrumented([sys.executable, str(HERE / "writing_imports.py"), str(driver)], tmp_path, mode=3)
    output = (tmp_path / "output").read_text()
    assert str(outcome.ending) == "exited with code 0", output
    leads = dict(line.split() for line in output.splitlines())
    assert {"printf", "vfprintf", "fwrite", "fputs", "puts", "write"} <= set(leads)
    assert set(leads.values()) == {"libffm_collector.so"}


@functools.cache
def call_bare(driver: Path) -> tuple[list[str], str]:
    """Call everything without hooks; return the calls that end the process, which are skipped with hooks, and what the
    others answered.
    """
    skipped: list[str] = []
    with tempfile.TemporaryDirectory() as folder:
        output = Path(folder) / "bare"
        while len(skipped) < 50:
            command = [sys.executable, str(HERE / "call_everything.py"), str(driver), str(output), ",".join(skipped)]
            if run(command, capture_output=True, timeout=SECONDS, check=False).returncode == 0:
                return skipped, output.read_text()
            last = output.read_text().splitlines()[-1]
            assert " " not in last, "it ended outside a call"
            skipped.append(last)
    raise AssertionError(f"too many calls end the process: {skipped}")


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
