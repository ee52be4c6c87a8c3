"""Situations in which a correction could be noticed: it is made safe, or not made; the program sees no difference."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from ffm.remedy.correct import compare_runs
from ffm.remedy.layout import constant
from ffm.remedy.selection import MEMORY_BYTES, delivers_late
from ffm.report.remedies.outcome import compare_outputs
from ffm.vgpu.paths import sample
from tests.conftest import Ffm
from tests.remedy.applying import Corrected, correct, every_correction

PROGRAMS = Path(__file__).parent / "programs"

CONFIGURATION = """
kernel.fill = 20000
kernel.fill_from_one = 20000
kernel.fill_through = 20000
device.memory = 0.0625
copy.host_to_device.pinned = 0.5
copy.device_to_host.pinned = 0.5
"""
"""A kernel of 20 ms, so that anyone who comes too early sees old bytes, and 64 MiB of device memory."""

Play = Callable[..., Corrected]


@pytest.fixture
def play(build_program: Callable[[Path], Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Play:
    """Run a scene bare and with every correction; they must not differ."""
    configuration = tmp_path / "slow.vgpu"
    configuration.write_text(CONFIGURATION)
    monkeypatch.setenv("VGPU_CONFIGURATION", str(configuration))
    program = build_program(PROGRAMS / "edges.cu")

    def run(scene: str, memory_bytes: int = MEMORY_BYTES) -> Corrected:
        corrected = correct([str(program), scene], tmp_path, memory_bytes=memory_bytes)
        assert corrected.differences == []
        return corrected

    return run


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
def test_a_kernel_that_is_given_pinned_memory_keeps_its_wait(
    scene: str, build_program: Callable[[Path], Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    configuration = tmp_path / "slow.vgpu"
    configuration.write_text(CONFIGURATION)
    monkeypatch.setenv("VGPU_CONFIGURATION", str(configuration))
    corrected = correct([str(build_program(PROGRAMS / "edges.cu")), scene], tmp_path)
    if corrected.counts["launches_unread"]:
        pytest.skip("this driver does not tell the parameters of kernels (cuFuncGetParamInfo)")
    assert corrected.differences == []
    assert corrected.counts["waits_host_memory"] == 1


def test_the_source_of_an_upload_may_be_overwritten_at_once(play: Play) -> None:
    counts = play("source_is_overwritten").counts
    assert counts["uploads_staged"] + counts["uploads_copied"] == 3


@pytest.mark.parametrize(("scene", "waits"), [("transfers_under_way", 9), ("freed_under_way", 4), ("handed_over", 8)])
def test_waits_for_transfers_move_to_where_their_memory_is_touched(scene: str, waits: int, play: Play) -> None:
    counts = play(scene).counts
    assert counts["synchronizations"] + counts["waits_host_memory"] == waits
    assert counts["synchronizations"] >= waits / 2
    assert counts["deliveries_touched"] + counts["deliveries_called"] > 0


def test_asynchronous_uploads_of_what_the_device_holds_are_copied_there(play: Play) -> None:
    counts = play("sent_again").counts
    assert (counts["uploads_kept"], counts["uploads_copied"]) == (2, 6)


def test_an_upload_is_left_out_only_while_its_destination_is_the_same_memory(play: Play) -> None:
    counts = play("sent_where_it_is").counts
    assert (counts["uploads_nothing"], counts["uploads_copied"], counts["uploads_kept"]) == (10, 6, 2)


def test_an_upload_that_is_left_out_keeps_streams_in_order(play: Play) -> None:
    assert play("sent_between_streams").counts["uploads_nothing"] == 3


def test_a_stream_copies_only_what_has_been_filled(play: Play) -> None:
    counts = play("sent_to_streams").counts
    assert counts["uploads_copied"] >= 8
    assert counts["stopped"] == 0


def test_what_the_gpu_reads_later_is_compared_only_where_it_would_be_read_at_once(play: Play) -> None:
    counts = play("source_is_filled_later").counts
    assert counts["uploads_copied"] >= 4
    assert counts["waits_host_memory"] >= 3  # a wait for a value
    assert counts["uploads_pinned"] >= 2  # a kernel that waits


def test_a_source_that_is_being_filled_is_not_compared(play: Play) -> None:
    assert play("source_is_being_filled").counts["waits_host_memory"] == 6


def test_memory_of_the_drivers_pool_is_followed_until_it_is_freed(play: Play) -> None:
    counts = play("pool_memory_goes_round").counts
    assert counts["uploads_copied"] == 3
    assert counts["downloads_staged"] == 4
    assert counts["waits_source"] == 0


def test_an_upload_in_a_graph_reads_its_source_in_each_launch(play: Play) -> None:
    counts = play("sent_by_a_graph").counts
    assert counts["waits_capture"] == 1
    assert counts["uploads_copied"] + counts["uploads_nothing"] == 0


def test_an_upload_to_memory_that_is_not_followed_is_left_and_counted(play: Play) -> None:
    counts = play("sent_to_managed_memory").counts
    assert counts["uploads_unfollowed"] == 2
    assert counts["uploads_kept"] == 0


def test_contents_that_come_back_are_copied_on_the_device(play: Play) -> None:
    assert play("contents_come_back").counts["uploads_copied"] >= 4


def test_contents_that_are_there_are_not_sent_again_unless_something_was_written_since(play: Play) -> None:
    counts = play("contents_are_there").counts
    assert counts["uploads_nothing"] == 7
    assert counts["uploads_copied"] >= 5


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
    build_program: Callable[[Path], Path], tmp_path: Path
) -> None:
    command = [str(build_program(PROGRAMS / "edges.cu")), "library_is_loaded"]
    everything = every_correction(command, tmp_path)
    late = compare_runs(command, everything, runs=1, files=[])
    assert [runs[0].output.split()[0] for runs in (late.bare, late.corrected)] == [b"0", b"1"]
    others = [planned for planned in everything if not delivers_late(planned)]
    at_once = compare_runs(command, others, runs=1, files=[])
    assert [runs[0].output.split()[0] for runs in (at_once.bare, at_once.corrected)] == [b"0", b"0"]
    assert at_once.counted[0].values["own_pages_bytes"] == 0


def test_a_program_in_python_is_corrected_at_the_stacks_that_were_measured(tmp_path: Path) -> None:
    corrected = correct([str(sample("train")), "60"], tmp_path)
    assert corrected.differences == []
    assert corrected.counts["unknown_calls"] == 0
    assert corrected.counts["downloads_staged"] >= 60


def test_system_calls_keep_all_their_arguments(play: Play) -> None:
    assert play("system_call_has_six_arguments").output == "second\n"


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
    program: str, build_program: Callable[[Path], Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    configuration = tmp_path / "slow.vgpu"
    configuration.write_text(CONFIGURATION)
    monkeypatch.setenv("VGPU_CONFIGURATION", str(configuration))
    corrected = correct([str(build_program(PROGRAMS / program)), "result_is_written_raw"], tmp_path)
    assert corrected.differences == []
    assert corrected.output.splitlines() == ["8", "8 1 2"]
    assert corrected.counts["downloads_staged"] == 0
    assert corrected.counts["waits_destination"] == 1


@pytest.mark.parametrize("offset", [0, 4096 + 512])
def test_pages_that_pinned_memory_shares_with_other_data_stay_open(
    offset: int, build_program: Callable[[Path], Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    configuration = tmp_path / "slow.vgpu"
    configuration.write_text(f"{CONFIGURATION}memory.pinned_offset = {offset}\n")
    monkeypatch.setenv("VGPU_CONFIGURATION", str(configuration))
    corrected = correct([str(build_program(PROGRAMS / "edges.cu")), "results_share_pages"], tmp_path)
    assert corrected.differences == []
    assert (corrected.counts["waits_destination"] >= 20) == (offset > 0)


def test_a_result_comes_however_long_it_takes_and_whoever_reads_it(
    build_program: Callable[[Path], Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # Longer than the library waits before it asks the driver, which tells the reading thread that it has no context.
    configuration = tmp_path / "slow.vgpu"
    configuration.write_text("kernel.fill = 1300000")
    monkeypatch.setenv("VGPU_CONFIGURATION", str(configuration))
    corrected = correct([str(build_program(PROGRAMS / "edges.cu")), "result_is_read_by_another_thread"], tmp_path)
    assert corrected.differences == []
    assert corrected.counts["deliveries_touched"] == 1


def test_children_are_forked_while_results_are_late(
    build_program: Callable[[Path], Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    configuration = tmp_path / "slow.vgpu"
    configuration.write_text(CONFIGURATION)
    monkeypatch.setenv("VGPU_CONFIGURATION", str(configuration))
    command = [str(build_program(PROGRAMS / "edges.cu")), "forks_beside_downloads"]
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


def test_threads_work_at_once(play: Play) -> None:
    counts = play("threads_at_once").counts
    assert counts["frees"] == 64
    assert counts["allocations"] > 0


def test_threads_at_once_can_be_measured(
    ffm: Ffm, build_program: Callable[[Path], Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    configuration = tmp_path / "slow.vgpu"
    configuration.write_text(CONFIGURATION)
    monkeypatch.setenv("VGPU_CONFIGURATION", str(configuration))
    program = build_program(PROGRAMS / "edges.cu")
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
    how: str, stopped: str, build_program: Callable[[Path], Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As PyCUDA's contexts do at the end of the program."""
    configuration = tmp_path / "slow.vgpu"
    configuration.write_text(CONFIGURATION)
    monkeypatch.setenv("VGPU_CONFIGURATION", str(configuration))
    corrected = correct([str(build_program(PROGRAMS / "detached.cu", "-l:libcuda.so.1")), how], tmp_path)
    assert corrected.differences == []
    assert corrected.output.splitlines() == ["detached"]
    assert corrected.comparison.counted[0].values["stopped"] == constant(stopped)
    assert corrected.counts["frees"] == (3 if how == "alone" else 0)


def test_stacks_that_were_not_measured_run_as_they_are(
    build_program: Callable[[Path], Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    configuration = tmp_path / "slow.vgpu"
    configuration.write_text(CONFIGURATION)
    monkeypatch.setenv("VGPU_CONFIGURATION", str(configuration))
    program = str(build_program(PROGRAMS / "edges.cu"))
    planned = every_correction([program, "freed_twice"], tmp_path)
    comparison = compare_runs([program, "memory_runs_out"], planned, runs=1, files=[])
    differences, _ = compare_outputs(comparison.bare, comparison.corrected)
    assert differences == []
    counts = comparison.counted[0].values
    assert counts["unknown_calls"] >= 9
    assert counts["frees"] == 0
