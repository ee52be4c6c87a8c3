"""The wait function is found in drivers of many shapes, or the tool says why not."""

from __future__ import annotations

import os
from pathlib import Path

import msgspec
import platformdirs
import pytest

import ffm.vgpu
from ffm.driver.analysis import WAITING_CALLS
from ffm.driver.library import DriverFileError
from ffm.instrument.probing.remembered import (
    FAILURE_REMEMBERED,
    find_and_remember,
    known_wait_function,
    wait_function,
)
from ffm.instrument.probing.wait_function import WaitFunction
from ffm.instrument.probing.wait_search import find_wait_function
from tests.instrument.small_driver import WITHOUT_UNWIND_TABLES, addresses, build


@pytest.fixture(autouse=True)
def _own_cache(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(platformdirs, "user_cache_dir", lambda name: str(tmp_path / "cache" / name))


def find(folder: Path, *options: str) -> tuple[WaitFunction, dict[str, int]]:
    return find_wait_function(build(folder, *options)), addresses(folder, *options)


@pytest.mark.parametrize(
    "options",
    [
        (),
        ("-DSPIN",),
        ("-O1",),
        ("-O3",),
        ("-fcf-protection=full",),
        ("-DCOLD",),
        WITHOUT_UNWIND_TABLES,
        ("-DSPIN", *WITHOUT_UNWIND_TABLES),
    ],
    ids=" ".join,
)
def test_found_in_every_build(tmp_path: Path, options: tuple[str, ...]) -> None:
    found, symbols = find(tmp_path, *options)
    assert found.reason == ""
    assert found.offset == symbols["internal_wait"]
    assert found.waiting_calls == WAITING_CALLS
    assert found.calls_that_did_not_wait == ()
    assert found.occupied_by == "host_function"


def test_a_sleep_that_other_calls_enter_too_is_not_taken(tmp_path: Path) -> None:
    found, symbols = find(tmp_path, "-DSHARED_SLEEP")
    assert found.offset == symbols["internal_wait"]
    rejected = {item.offset: item.objection for item in found.candidates if item.objection}
    assert "enqueue" in rejected[symbols["sleep_until_changed"]]


def test_a_function_that_returns_while_the_call_still_waits_is_not_taken(tmp_path: Path) -> None:
    found, symbols = find(tmp_path, "-DNAPS")
    assert found.offset == symbols["internal_wait"]
    rejected = {item.offset: item.objection for item in found.candidates if item.objection}
    assert "still waits" in rejected[symbols["nap"]]


def test_a_driver_without_host_functions_is_kept_busy_by_a_value(tmp_path: Path) -> None:
    found, symbols = find(tmp_path, "-DNO_HOST_FUNCTION")
    assert found.occupied_by == "stream_wait_value"
    assert found.offset == symbols["internal_wait"]


def test_a_call_that_does_not_wait_is_named(tmp_path: Path) -> None:
    found, symbols = find(tmp_path, "-DFREE_DOES_NOT_WAIT")
    assert found.calls_that_did_not_wait == ("cuMemFree_v2",)
    assert found.offset == symbols["internal_wait"]


@pytest.mark.parametrize(
    ("options", "reason"),
    [
        (("-DNO_DEVICE",), "cuInit returned the error 100"),
        (("-DCRASHES",), "the probe ended"),
    ],
    ids=lambda value: value if isinstance(value, str) else " ".join(value),
)
def test_says_why_there_is_none(tmp_path: Path, options: tuple[str, ...], reason: str) -> None:
    found, _ = find(tmp_path, *options)
    assert found.offset is None
    assert found.end is None
    assert reason in found.reason


def test_a_copy_of_the_wait_in_a_calls_own_code_is_found_too(tmp_path: Path) -> None:
    found, symbols = find(tmp_path, "-DINLINED")
    assert found.offset == symbols["internal_wait"]
    assert found.others == (symbols["synchronize_stream"],)
    assert found.own_code == ("cuStreamSynchronize",)
    assert found.offsets == (found.offset, *found.others)


def test_where_launches_enter_it_its_callers_are_taken(tmp_path: Path) -> None:
    found, symbols = find(tmp_path, "-DLAUNCH_ENTERS")
    assert found.offsets == (symbols["wait_for_context"], symbols["synchronize_event"])
    rejected = {item.offset: item.objection for item in found.candidates if item.objection}
    assert rejected[symbols["internal_wait"]] == "entered by calls that only enqueue work"


def test_calls_that_share_nothing_are_no_answer(tmp_path: Path) -> None:
    # Two of the copies would have the same code, which the compiler merges.
    found, _ = find(tmp_path, "-DALONE", "-fno-ipa-icf")
    assert found.offsets == ()
    assert "waits in its own way" in found.reason


def test_a_driver_that_hangs_is_given_up(tmp_path: Path) -> None:
    found = find_wait_function(build(tmp_path, "-DNEVER_RETURNS"), limit=1.5)
    assert found.offset is None
    assert "did not finish within" in found.reason


def test_what_was_found_is_remembered_for_the_build(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    library = build(tmp_path)
    first = wait_function(library)
    assert first.offset is not None

    def fail(*_: object) -> None:
        raise AssertionError("probed again")

    monkeypatch.setattr("ffm.instrument.probing.remembered.find_wait_function", fail)
    assert wait_function(library) == first


def test_a_failure_is_remembered_for_a_while_only(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    library = build(tmp_path, "-DNO_DEVICE")
    failure = wait_function(library)
    assert failure.offset is None
    assert known_wait_function(library) is None
    searches: list[Path] = []

    def search(driver: Path, **_: object) -> WaitFunction:
        searches.append(driver)
        return failure

    monkeypatch.setattr("ffm.instrument.probing.remembered.find_wait_function", search)
    assert wait_function(library) == failure
    assert searches == []
    (stored,) = (tmp_path / "cache").rglob("*.no-wait.json")
    long_ago = stored.stat().st_mtime - FAILURE_REMEMBERED - 1
    os.utime(stored, (long_ago, long_ago))
    assert wait_function(library) == failure
    assert searches == [library, library]


def test_an_answer_that_leaves_calls_out_is_asked_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A busy machine can hide a call's wait. What then serves the calls one by one must not stay for good."""
    library = build(tmp_path)
    complete = wait_function(library)
    (stored,) = (tmp_path / "cache").rglob("*.wait.json")
    disturbed = msgspec.structs.replace(complete, others=(1,), uncovered_calls=("cuStreamSynchronize (blocking)",))
    stored.write_bytes(msgspec.json.encode(disturbed))
    answers = [disturbed, disturbed]
    monkeypatch.setattr("ffm.instrument.probing.remembered.find_wait_function", lambda *_, **__: answers.pop(0))
    assert known_wait_function(library) is None
    assert wait_function(library) == disturbed  # for a while
    assert answers == []
    assert known_wait_function(library) is None
    answers = [disturbed, complete]
    assert find_and_remember(library) == complete
    assert known_wait_function(library) == complete


def test_a_damaged_memory_is_ignored(tmp_path: Path) -> None:
    library = build(tmp_path)
    first = wait_function(library)
    (stored,) = (tmp_path / "cache").rglob("*.wait.json")
    stored.write_bytes(stored.read_bytes()[:50])
    assert wait_function(library).offset == first.offset


def test_a_file_that_is_no_driver_is_refused(tmp_path: Path) -> None:
    (tmp_path / "libcuda.so.1").write_text("not a library")
    with pytest.raises(DriverFileError, match=r"libcuda\.so\.1 cannot be read"):
        find_wait_function(tmp_path / "libcuda.so.1")


def virtual_driver() -> Path:
    for folder in ffm.vgpu.__path__:
        library = Path(folder) / "lib" / "libcuda.so.1"
        if library.exists():
            return library.resolve()
    pytest.skip("the virtual driver is not built: run `make setup`")


def test_found_in_the_virtual_driver() -> None:
    found = find_wait_function(virtual_driver())
    assert found.reason == ""
    assert set(WAITING_CALLS) <= set(found.waiting_calls)
    assert found.others == ()
    assert found.among_static_candidates
    accepted = [item.offset for item in found.candidates if not item.objection]
    assert found.offset == accepted[0]


def test_found_where_kernels_run_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The virtual GPU can be set to do this: the kernel of the search is accepted, and over at once."""
    configuration = tmp_path / "vgpu"
    configuration.write_text("device.code = pass\n")
    monkeypatch.setenv("VGPU_CONFIGURATION", str(configuration))
    found = find_wait_function(virtual_driver())
    assert found.reason == ""
    assert found.occupied_by == "host_function"
