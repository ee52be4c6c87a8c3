"""Situations in which removed waits and pooled memory could be noticed: they are made safe, or not made; the program
sees no difference.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from ffm.remedy.correct import compare_runs
from ffm.remedy.layout import constant
from ffm.report.remedies.outputs import compare_outputs
from tests.conftest import Ffm
from tests.remedy.applying import PROGRAMS, Play, correct, every_correction

pytestmark = pytest.mark.usefixtures("slow_gpu")


@pytest.mark.thorough
def test_the_pool_gives_back_before_memory_runs_out(play: Play) -> None:
    counts = play("memory_runs_out").counts
    assert counts["frees"] >= 6
    assert counts["pool_returned"] >= 2


def test_free_memory_is_told_as_if_nothing_were_pooled(play: Play) -> None:
    counts = play("sizes_change").counts
    assert counts["frees"] == 41
    assert counts["allocations"] > 20


def test_blocks_have_the_size_that_was_asked_for(play: Play) -> None:
    assert play("sizes_are_told").counts["allocations"] > 0


def test_idle_blocks_stay_within_the_memory_that_corrections_may_take(play: Play) -> None:
    """The largest block has 2.5 MiB, all together 51 MiB."""
    counts = play("sizes_grow", memory_bytes=1 << 20).counts
    assert counts["frees"] == 40
    assert counts["pool_peak_bytes"] <= 7 << 19


def test_freeing_a_pooled_block_again_is_an_error(play: Play) -> None:
    assert play("freed_twice").counts["frees"] == 1


def test_the_driver_answers_questions_about_a_pooled_block_as_about_freed_memory(play: Play) -> None:
    counts = play("asked_about_when_freed").counts
    assert counts["frees"] == 3 * 5
    assert counts["pool_returned"] == 3 * 4


def test_the_driver_frees_what_was_given_to_others(play: Play) -> None:
    assert play("given_to_others").counts["frees"] == 0


def test_questions_about_time_wait_first(play: Play) -> None:
    counts = play("event_times").counts
    assert counts["synchronizations"] == 2
    assert counts["waits_questions"] > 0


@pytest.mark.parametrize(
    "scene", ["host_functions", "nothing_is_freed", "managed_memory", "mapped_memory", "addresses_in_memory"]
)
def test_waits_stay_while_the_gpu_works_on_host_memory(scene: str, play: Play) -> None:
    counts = play(scene).counts
    assert counts["waits_host_memory"] == 1
    assert counts["synchronizations"] == 0


def test_a_wait_stays_that_another_thread_is_to_end(play: Play) -> None:
    counts = play("value_is_awaited").counts
    assert counts["waits_host_memory"] >= 1
    assert counts["synchronizations"] == 0


def test_work_of_destroyed_streams_is_waited_for(play: Play) -> None:
    counts = play("stream_is_destroyed").counts
    assert counts["synchronizations"] == 3
    assert counts["stopped"] == 0


def test_a_threads_own_stream_can_be_captured_after_a_wait_was_removed(play: Play) -> None:
    counts = play("own_stream_is_captured").counts
    assert counts["synchronizations"] == 1
    assert counts["stopped"] == 0


def test_a_capture_is_over_only_with_its_own_end(play: Play) -> None:
    counts = play("wrong_end_of_a_capture").counts
    assert counts["waits_capture"] == 2
    assert counts["waits_driver"] == 0


def test_a_program_ends_after_the_work_that_it_waited_for(play: Play) -> None:
    assert play("prints_at_the_end").counts["synchronizations"] == 1


@pytest.mark.parametrize(
    ("scene", "waits", "least", "most"),
    [
        ("streams_come_later", 20, 1, 2),
        ("kernels_begin_early", 3, 3, 3),
        ("calls_are_handed_out", 3, 3, 3),
        ("asks_before_it_lets_go", 1, 1, 1),
        ("asks_behind_later_work", 4, 4, 4),
    ],
)
def test_an_order_is_recorded_where_that_of_the_one_stream_does_not_say_it(
    scene: str, waits: int, least: int, most: int, play: Play
) -> None:
    counts = play(scene).counts
    assert counts["synchronizations"] >= waits
    assert least <= counts["fences"] <= most
    assert counts["stopped"] == 0


@pytest.mark.parametrize("scene", ["unified_addresses", "cooperative_launch"])
def test_a_kernel_that_is_given_pinned_memory_keeps_its_wait(scene: str, edges: Path, tmp_path: Path) -> None:
    corrected = correct([str(edges), scene], tmp_path)
    if corrected.counts["launches_unread"]:
        pytest.skip("this driver does not tell the parameters of kernels (cuFuncGetParamInfo)")
    assert corrected.differences == []
    assert corrected.counts["waits_host_memory"] == 1


def test_corrections_stop_before_another_process_can_use_memory(play: Play) -> None:
    corrected = play("memory_is_read_elsewhere")
    assert constant("FFM_STOP_SHARED") in [process.values["stopped"] for process in corrected.comparison.counted]
    assert corrected.counts["synchronizations"] == 0


@pytest.mark.parametrize("scene", ["address_is_kept", "address_is_before_the_block", "ordinary_memory"])
def test_waits_stay_while_a_kernel_may_know_an_address_of_host_memory(scene: str, play: Play) -> None:
    assert play(scene).counts["waits_host_memory"] >= 3


def test_the_driver_answers_all_calls_once_work_has_failed(play: Play) -> None:
    corrected = play("work_fails")
    assert corrected.output.split() == ["cudaErrorIllegalAddress"] * 9
    assert corrected.comparison.counted[0].values["stopped"] == constant("FFM_STOP_ERROR")


def test_threads_work_at_once(play: Play) -> None:
    counts = play("threads_at_once").counts
    assert counts["frees"] == 64
    assert counts["allocations"] > 0


def test_threads_at_once_can_be_measured(ffm: Ffm, edges: Path, tmp_path: Path) -> None:
    program = edges
    for stage in ("baseline", "tracing", "memory", "sync-use"):
        done = ffm("stage", stage, "--results", tmp_path / "results", "--", program, "threads_at_once", folder=tmp_path)
        assert done.code == 0, done.err


def test_a_program_may_reset_the_device_and_go_on(play: Play) -> None:
    assert play("starts_again").counts["frees"] == 2


def test_a_second_context_ends_all_corrections(play: Play) -> None:
    corrected = play("two_contexts")
    assert corrected.comparison.counted[0].values["stopped"] == constant("FFM_STOP_CONTEXTS")
    assert corrected.counts["frees"] == 0


@pytest.mark.parametrize(("how", "stopped"), [("alone", "FFM_STOP_NONE"), ("attached", "FFM_STOP_SHARED")])
def test_to_detach_from_a_context_ends_it_unless_something_else_refers_to_it(
    how: str, stopped: str, build_program: Callable[[Path], Path], tmp_path: Path
) -> None:
    """As PyCUDA's contexts do at the end of the program."""
    corrected = correct([str(build_program(PROGRAMS / "detached.cu", "-l:libcuda.so.1")), how], tmp_path)
    assert corrected.differences == []
    assert corrected.output.splitlines() == ["detached"]
    assert corrected.comparison.counted[0].values["stopped"] == constant(stopped)
    assert corrected.counts["frees"] == (3 if how == "alone" else 0)


def test_stacks_that_were_not_measured_run_as_they_are(edges: Path, tmp_path: Path) -> None:
    program = str(edges)
    planned = every_correction([program, "freed_twice"], tmp_path)
    comparison = compare_runs([program, "memory_runs_out"], planned, runs=1, files=[])
    differences, _ = compare_outputs(comparison.bare, comparison.corrected)
    assert differences == []
    counts = comparison.counted[0].values
    assert counts["unknown_calls"] >= 9
    assert counts["frees"] == 0
