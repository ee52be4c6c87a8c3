"""Which variants of a test `make test` runs, where each takes about a second of the processor: the first and every
third one after it. `make thorough` runs the others.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable

import pytest

STEP = 3

THINNED = (
    "cli/test_run.py::test_an_interruption_ends_the_program_and_is_told_once",
    "cli/test_run.py::test_a_stage_that_fails_is_told_once_in_its_own_sentence",
    "driver/test_device_code.py::test_programs_of_nvcc",
    "driver/test_device_sources.py::test_programs_of_nvcc",
    "evidence/test_ordinary_memory.py::test_a_parameter_that_may_be_an_address",
    "faults/test_bad_kinds.py::test_it_ends_as_without_ffm_or_says_why_it_cannot_be_measured",
    "faults/test_full_disk.py::test_no_output_is_cut",
    "faults/test_full_disk.py::test_standard_output_that_is_full",
    "faults/test_workflow.py::test_an_error_outside_of_the_stages_is_one_sentence",
    "instrument/test_gate.py::test_a_program_that_frida_gave_up_on_is_started_again",
    "instrument/test_wait_function.py::test_found_in_every_build",
    "instrument/test_watched_programs.py::test_a_watched_program_writes_what_it_writes_unwatched",
    "native/base/test_marks.py::test_the_peak_is_what_all_threads_have_together",
    "pipeline/test_children.py::test_a_child_may_be_the_first_to_load_the_driver",
    "pipeline/test_endless.py::test_the_last_seconds_are_kept_whole",
    "pipeline/test_interruption.py::test_a_killed_workflow_leaves_neither_its_stage_nor_the_program",
    "pipeline/test_interruption.py::test_a_stage_that_is_told_to_end_leaves_no_process",
    "pipeline/test_nvtx.py::test_a_range_delimits_iterations",
    "pipeline/test_portions.py::test_a_portion_of_a_program_without_end_is_found_again",
    "pipeline/test_signals_taken.py::test_a_program_takes_the_signal_that_it_sent",
    "pipeline/test_unknown_instructions.py::test_the_trace_refuses_what_it_cannot_translate",
    "planted/test_portions.py::test_edges_are_not_judged",
    "planted/test_trace.py::test_verdicts_are_as_labelled",
    "remedy/test_random_programs.py::test_corrected_programs_write_the_same",
    "remedy/test_safe_downloads.py::test_a_program_with_system_calls_of_its_own_keeps_its_downloads",
    "remedy/test_safe_downloads.py::test_downloads_are_delivered_before_anything_can_tell",
    "remedy/test_safe_downloads.py::test_downloads_to_memory_that_cannot_be_closed_stay_synchronous",
    "remedy/test_safety.py::test_waits_stay_while_the_gpu_works_on_host_memory",
    "remedy/test_timed.py::test_a_clock_is_read_when_what_was_waited_for_is_over",
    "remedy/test_timed_downloads.py::test_a_clock_is_read_when_what_was_downloaded_is_there",
    "remedy/test_timed_uploads.py::test_a_clock_is_read_when_what_was_uploaded_is_there",
    "sources/test_otf2.py::test_the_path_through_ranks_is_casitas",
    "sources/test_otf2.py::test_waiting_of_ranks_and_threads_is_casitas",
    "vgpu/instructions/test_conformance.py::test_instructions_compute_what_the_isa_says",
    "vgpu/test_device_code.py::test_what_nvcc_compiles_runs_as_far_as_the_host_goes",
    "vgpu/test_nvidia_runtime.py::test_runtime_answers_calls_of_every_family",
    "vgpu/test_ptx_programs.py::test_the_message_names_kernel_and_instruction",
)


def leave_variants(items: Iterable[pytest.Item]) -> None:
    """Mark those that `make test` leaves out; a variant that is marked already is not counted."""
    met: Counter[str] = Counter()
    for item in items:
        name = item.nodeid.partition("[")[0].removeprefix("tests/")
        if name not in THINNED or item.get_closest_marker("thorough") is not None:
            continue
        if met[name] % STEP:
            item.add_marker("thorough")
        met[name] += 1
