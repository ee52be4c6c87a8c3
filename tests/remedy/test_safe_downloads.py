"""Situations in which late downloads could be noticed: they are made safe, or not made; the program sees no
difference.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from ffm.remedy.correct import compare_runs
from ffm.remedy.plan_file import delivers_late
from ffm.report.remedies.outputs import compare_outputs
from tests.remedy.applying import PROGRAMS, Play, correct, every_correction

pytestmark = pytest.mark.usefixtures("slow_gpu")


@pytest.mark.parametrize(("scene", "waits"), [("transfers_under_way", 9), ("freed_under_way", 4), ("handed_over", 8)])
def test_waits_for_transfers_move_to_where_their_memory_is_touched(scene: str, waits: int, play: Play) -> None:
    counts = play(scene).counts
    assert counts["synchronizations"] + counts["waits_host_memory"] == waits
    assert counts["synchronizations"] >= waits / 2
    assert counts["deliveries_touched"] + counts["deliveries_called"] > 0


@pytest.mark.parametrize(
    "scene",
    [
        "result_is_read",
        "result_is_overwritten",
        "result_is_written",
        "result_is_read_over",
        "result_is_freed",
        "results_are_written_together",
        "rows_lie_apart",
        "child_reads",
        "command_is_beside_a_result",
        "handler_blocks_all_signals",
        "reads_at_exit",
        "own_handler",
        "blocked_signals",
    ],
)
def test_downloads_are_delivered_before_anything_can_tell(scene: str, play: Play) -> None:
    counts = play(scene).counts
    assert counts["downloads_staged"] >= 1
    assert counts["deliveries"] == counts["downloads_staged"]
    assert counts["deliveries_touched"] + counts["deliveries_called"] >= 1


def test_blocks_of_the_heap_have_pages_of_their_own(play: Play) -> None:
    counts = play("result_is_on_the_heap").counts
    assert counts["downloads_staged"] == counts["deliveries"] == 6
    assert counts["own_pages_bytes"] > 0


@pytest.mark.parametrize("mebibytes", [1, 256])
def test_pages_of_their_own_stay_within_the_memory_that_corrections_may_take(mebibytes: int, play: Play) -> None:
    counts = play("heap_has_many_blocks", memory_bytes=mebibytes << 20).counts
    assert (counts["own_pages_bytes"] > 1 << 20) == (mebibytes > 1)


def test_results_on_one_page_are_late_together(play: Play) -> None:
    counts = play("results_share_pages").counts
    assert counts["downloads_staged"] == 26
    # Of the downloads to the same bytes, two had to be delivered before the next.
    assert counts["deliveries_called"] == 2
    assert counts["deliveries_touched"] == 24
    assert counts["deliveries_awaited"] >= 3


def test_heap_blocks_stay_as_they_are_in_the_bare_program_and_where_nothing_is_late(
    edges: Path, tmp_path: Path
) -> None:
    command = [str(edges), "library_is_loaded"]
    everything = every_correction(command, tmp_path)
    late = compare_runs(command, everything, runs=1, files=[])
    assert [runs[0].output.split()[0] for runs in (late.bare, late.corrected)] == [b"0", b"1"]
    others = [planned for planned in everything if not delivers_late(planned)]
    at_once = compare_runs(command, others, runs=1, files=[])
    assert [runs[0].output.split()[0] for runs in (at_once.bare, at_once.corrected)] == [b"0", b"0"]
    assert at_once.counted[0].values["own_pages_bytes"] == 0


def test_system_calls_keep_all_their_arguments(play: Play) -> None:
    assert play("system_call_has_six_arguments").output == "second\n"


@pytest.mark.parametrize(
    "scene",
    [
        "handler_runs_in_sigsuspend",
        "handler_runs_in_poll",
        "handler_runs_in_select",
        "handler_runs_in_epoll",
        "thread_begins_with_signals_blocked",
    ],
)
def test_results_are_delivered_where_signals_are_blocked_for_a_while(scene: str, play: Play) -> None:
    assert play(scene).counts["deliveries_touched"] == 1


def test_a_program_is_told_what_it_asked_for_of_signals(play: Play) -> None:
    corrected = play("asks_about_signals")
    assert corrected.output.splitlines() == ["1 0", "10", "10", "1"]
    assert corrected.counts["downloads_staged"] == 1


def test_pages_stay_open_that_a_system_call_is_using(play: Play) -> None:
    assert play("read_is_under_way").output.splitlines()[:2] == ["7 spoken", "7"]


def test_late_downloads_leave_numbers_of_files_to_the_program(play: Play) -> None:
    assert play("numbers_files").output == "1\n"


def test_memory_that_a_program_never_touches_takes_none(play: Play) -> None:
    assert play("sparse_memory").output == "0 0\n"


@pytest.mark.parametrize("program", ["raw_edges.cu", "raw_edges_any_number.cu"])
def test_a_program_with_system_calls_of_its_own_keeps_its_downloads(
    program: str, build_program: Callable[[Path], Path], tmp_path: Path
) -> None:
    corrected = correct([str(build_program(PROGRAMS / program)), "result_is_written_raw"], tmp_path)
    assert corrected.differences == []
    assert corrected.output.splitlines() == ["8", "8 1 2"]
    assert corrected.counts["downloads_staged"] == 0
    assert corrected.counts["waits_destination"] == 1


@pytest.mark.parametrize("offset", [0, 4096 + 512])
def test_pages_that_pinned_memory_shares_with_other_data_stay_open(
    offset: int, edges: Path, tmp_path: Path, slow_gpu: Path
) -> None:
    with slow_gpu.open("a") as configuration:
        configuration.write(f"memory.pinned_offset = {offset}\n")
    corrected = correct([str(edges), "results_share_pages"], tmp_path)
    assert corrected.differences == []
    assert (corrected.counts["waits_destination"] >= 20) == (offset > 0)


def test_a_result_comes_however_long_it_takes_and_whoever_reads_it(edges: Path, tmp_path: Path, slow_gpu: Path) -> None:
    # Longer than the library waits before it asks the driver, which tells the reading thread that it has no context.
    slow_gpu.write_text("kernel.fill = 1300000")
    corrected = correct([str(edges), "result_is_read_by_another_thread"], tmp_path)
    assert corrected.differences == []
    assert corrected.counts["deliveries_touched"] == 1


def test_children_are_forked_while_results_are_late(edges: Path, tmp_path: Path) -> None:
    command = [str(edges), "forks_beside_downloads"]
    comparison = compare_runs([*command, "4"], every_correction(command, tmp_path), runs=1, files=[], timeout_s=60)
    assert compare_outputs(comparison.bare, comparison.corrected)[0] == []
    assert comparison.corrected[0].output.split() == [b"4"]
    assert len(comparison.counted) >= 5
    counted = [process.values for process in comparison.counted]
    assert any(values["downloads_staged"] for values in counted), counted


def test_a_download_of_memory_that_is_not_followed_waits_and_is_counted(play: Play) -> None:
    counts = play("result_of_managed_memory").counts
    assert counts["waits_source"] == 1
    assert counts["downloads_staged"] == 0


@pytest.mark.parametrize("scene", ["fault_of_its_own", "signal_from_outside"])
def test_a_program_that_crashes_does_so_corrected(scene: str, play: Play) -> None:
    corrected = play(scene)
    assert "SIGSEGV" in str(corrected.comparison.corrected[0].ending)
    assert corrected.counts["downloads_staged"] == 1


@pytest.mark.parametrize(
    "scene",
    [
        "result_is_on_the_stack",
        "result_is_on_a_stack_from_the_heap",
        "result_is_on_the_stack_of_a_coroutine",
        "result_is_shared",
    ],
)
def test_downloads_to_memory_that_cannot_be_closed_stay_synchronous(scene: str, play: Play) -> None:
    counts = play(scene).counts
    assert counts["downloads_staged"] == 0
    assert counts["waits_destination"] >= 1
