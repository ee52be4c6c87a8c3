"""Which remedy a problem gets, and which places must change with it."""

from __future__ import annotations

from dataclasses import replace

import msgspec
import pytest

from ffm.report.frameworks import CUPY, NUMBA, PYTHON, TORCH, Framework
from ffm.report.remedies.advice import identify_remedies
from ffm.report.remedies.problem_sites import problem_sites
from ffm.report.remedies.remedy import MemoryLink, PartialDownload, PlaceToChange, ProblemSite, RemedyKind
from ffm.results.documents.analysis import AllocationLink
from ffm.results.documents.site import Verdict
from ffm.results.documents.stacks import Frame
from ffm.results.vocabulary import Because
from tests.report.sample_analysis import sample_analysis

FREE = ProblemSite(
    site=3,
    call="cudaFree",
    kind="free",
    sets_memory=False,
    count=10,
    unnecessary=10,
    misplaced=0,
    no_op=0,
    repeat=0,
    changed=0,
    keep=(),
    memory=(MemoryLink("frees", "device", allocation=1, release=3),),
    benefit_s=2.0,
)
PINNED = MemoryLink("host memory", "pinned", allocation=5, release=6)
PAGEABLE = MemoryLink("host memory", "pageable", allocation=None, release=None)
DESTINATION = MemoryLink("destination", "device", allocation=1, release=2)
TRANSFER = replace(FREE, site=4, call="cudaMemcpy", kind="transfer", memory=(PINNED, DESTINATION))
EXPLICIT = replace(FREE, site=7, call="cudaDeviceSynchronize", kind="synchronization", memory=())


def test_a_free_changes_together_with_its_allocation() -> None:
    (remedy,) = identify_remedies([FREE])
    assert remedy.kind is RemedyKind.MEMORY_MANAGEMENT
    assert remedy.places == (PlaceToChange("call", 3), PlaceToChange("allocation of the buffer", 1))
    assert any("cudaFreeAsync" in step for step in remedy.steps)


def test_a_buffer_that_is_freed_once_cannot_be_kept_for_longer() -> None:
    (once,) = identify_remedies([replace(FREE, count=1, unnecessary=1)])
    assert "before the loop" not in " ".join(once.steps) and "where the GPU has no work" in once.steps[0]
    assert any("cudaFreeAsync" in step for step in once.steps)


@pytest.mark.parametrize("memory", ["pinned", "registered", "managed"])
def test_a_pool_of_device_memory_replaces_no_other_memory(memory: str) -> None:
    link = MemoryLink("frees", memory, allocation=1, release=3)
    for count in (1, 10):
        advice = told(replace(FREE, count=count, unnecessary=count, memory=(link,), from_pool=False))
        assert "cudaMallocAsync" not in advice and "cudaFreeAsync" not in advice
    assert ("registered" in advice) == (memory == "registered")


@pytest.mark.parametrize(
    ("function", "memory", "pool"),
    [
        ("cuMemFree_v2", "device", True),
        ("cuMemFree_v2", "managed", False),
        ("cuMemHostUnregister", "registered", False),
        ("cuArrayDestroy", "", False),
        ("cudaFree", "device", True),
    ],
)
def test_what_a_free_releases_decides_whether_a_pool_can_replace_it(function: str, memory: str, pool: bool) -> None:
    analysis = sample_analysis()
    analysis.sites[0] = msgspec.structs.replace(analysis.sites[0], function=function)
    analysis.allocations[:] = [
        AllocationLink(site=0, role="frees", memory=memory, allocation=None, release=0, occurrences=1)
        for _ in range(bool(memory))
    ]
    assert next(one for one in problem_sites(analysis, "replay") if one.site == 0).from_pool is pool


def test_a_record_may_be_missing_before_a_wait_for_an_event() -> None:
    advice = told(replace(EXPLICIT, call="cudaEventSynchronize", unrecorded=10))
    assert "Remove the cudaEventSynchronize" in advice
    assert "check whether a record of the event is missing: in 10 of 10 calls" in advice


def test_what_the_runtime_does_at_the_end_of_a_program_is_no_place_to_change() -> None:
    ends = replace(EXPLICIT, call="cuLibraryUnload", kind="other", count=1, unnecessary=1)
    assert "leave it out" in told(ends)
    assert "nothing to change" in told(replace(ends, at_exit=True))
    (free,) = identify_remedies([replace(FREE, at_exit=True, framework=CUPY)])
    assert "nothing to change" in free.steps[0] and CUPY.memory not in free.steps


@pytest.mark.parametrize(
    ("caller", "outside", "at_exit"),
    [
        ("Py_FinalizeEx", "main", True),
        ("__run_exit_handlers", "exit", True),
        ("__call_tls_dtors", "__run_exit_handlers", True),
        ("__call_tls_dtors", "start_thread", False),
        ("release", "__run_exit_handlers", False),
    ],
    ids=["Python", "C", "of the last thread", "of another thread", "the program's own function"],
)
def test_a_library_releases_what_it_has_when_the_program_ends(caller: str, outside: str, at_exit: bool) -> None:
    analysis = sample_analysis()
    stack = analysis.stacks[analysis.sites[0].stack]
    frames = [*stack.frames[:1], *(Frame(module=0, offset=1, function=name) for name in (caller, outside))]
    stacks = [msgspec.structs.replace(one, frames=frames) if one is stack else one for one in analysis.stacks]
    sites = [msgspec.structs.replace(analysis.sites[0], caller=caller), *analysis.sites[1:]]
    changed = msgspec.structs.replace(analysis, stacks=stacks, sites=sites)
    (found,) = (one for one in problem_sites(changed, "carry") if one.site == 0)
    assert found.at_exit is at_exit


@pytest.mark.parametrize(
    ("outermost", "starts", "at_exit"),
    [("_finish_up", "__libc_start_main", True), ("<module>", "__libc_start_main", False), ("run", "clone3", False)],
    ids=["atexit", "a module", "a thread"],
)
def test_what_a_package_gave_to_atexit_is_called_when_the_program_ends(
    outermost: str, starts: str, at_exit: bool
) -> None:
    package = "/env/lib/python3.12/site-packages/pycuda/tools.py"
    script = Frame(module=0, offset=0, function=outermost, file=package, line=7, python=True)
    analysis = sample_analysis()
    stack = analysis.stacks[analysis.sites[0].stack]
    frames = [stack.frames[0], script, Frame(module=1, offset=1, function=starts)]
    stacks = [msgspec.structs.replace(one, frames=frames) if one is stack else one for one in analysis.stacks]
    sites = [msgspec.structs.replace(analysis.sites[0], caller=outermost), *analysis.sites[1:]]
    changed = msgspec.structs.replace(analysis, stacks=stacks, sites=sites)
    (found,) = (one for one in problem_sites(changed, "carry") if one.site == 0)
    assert found.at_exit is at_exit


@pytest.mark.parametrize("framework", [None, CUPY])
def test_device_code_is_loaded_before_the_gpu_has_work(framework: Framework | None) -> None:
    loads = replace(EXPLICIT, call="cuModuleLoadData", kind="other", loads_code=True, framework=framework, keep=(8,))
    advice = told(loads)
    assert "Loading device code waits for the GPU" in advice and "warm-up" in advice
    assert "leave it out" not in advice and "named below stays" in advice


def test_a_synchronous_transfer_of_pinned_memory_changes_alone_at_its_call() -> None:
    (remedy,) = identify_remedies([TRANSFER])
    assert remedy.kind is RemedyKind.SYNCHRONOUS_TRANSFER
    assert any("already pinned" in step for step in remedy.steps)


def test_a_copy_that_a_later_wait_covers_stays_on_its_stream() -> None:
    upload, download = (replace(TRANSFER, downloads=downloads) for downloads in (False, True))
    assert "cudaMemcpyAsync on the stream of the work that uses the data" in told(upload)
    assert "cudaMemcpyAsync on the stream of the work that writes the data" in told(download)
    kept = told(replace(download, keep=(8,)))
    assert "cudaMemcpyAsync on the stream that the call uses now" in kept and "of the work" not in kept
    assert "of the work that writes" in told(replace(download, keep=(download.site,)))


def test_a_synchronous_transfer_of_pageable_memory_has_to_be_pinned() -> None:
    (remedy,) = identify_remedies([replace(TRANSFER, memory=(PAGEABLE,))])
    assert any("cudaMallocHost" in step for step in remedy.steps)
    assert any("was not observed" in step for step in remedy.steps)
    assert [place.role for place in remedy.places] == ["call"]


@pytest.mark.parametrize(
    ("call", "asynchronous"),
    [
        ("cudaMemcpyToSymbol", "cudaMemcpyToSymbolAsync"),
        ("cudaMemcpy2D_ptds", "cudaMemcpy2DAsync"),
        ("cuMemcpyHtoD_v2", "cuMemcpyHtoDAsync"),
        ("cuMemcpyDtoHAsync_v2", "cuMemcpyDtoHAsync"),
        ("cuMemcpyAtoD", "cudaMemcpyAsync"),
        ("cublasSetVector", "cudaMemcpyAsync"),
    ],
)
def test_a_transfer_is_replaced_by_the_asynchronous_form_of_its_own_call(call: str, asynchronous: str) -> None:
    (remedy,) = identify_remedies([replace(TRANSFER, call=call)])
    assert remedy.steps[0].startswith(f"Use {asynchronous} on ")


@pytest.mark.parametrize("downloads", [False, True])
@pytest.mark.parametrize("framework", [None, CUPY, NUMBA, TORCH, PYTHON])
def test_what_is_uploaded_from_pinned_memory_in_place_of_pageable_has_to_stay_until_then(
    framework: Framework | None, downloads: bool
) -> None:
    (remedy,) = identify_remedies([replace(TRANSFER, memory=(PAGEABLE,), downloads=downloads, framework=framework)])
    assert any("write or free it only after" in step for step in remedy.steps) is not downloads


def test_a_copy_that_is_asynchronous_by_name_need_only_be_pinned() -> None:
    (remedy,) = identify_remedies([replace(TRANSFER, call="cudaMemcpyAsync", memory=(PAGEABLE,))])
    assert not any(step.startswith("Use ") for step in remedy.steps)
    assert any("cudaMallocHost" in step for step in remedy.steps)


@pytest.mark.parametrize(("saving_s", "first"), [(1.0, "synchronous transfer"), (3.0, "download")])
def test_a_download_that_nobody_touches_is_named_by_what_saves_most(saving_s: float, first: str) -> None:
    untouched = PartialDownload(1 << 24, 0, 0, 0, 10, 10, 10, "Nothing was touched.", saving_s)
    (remedy,) = identify_remedies([replace(TRANSFER, download=untouched)])
    assert (remedy.kind is RemedyKind.PARTIAL_DOWNLOAD) == (first == "download")
    assert remedy.benefit_s == max(saving_s, TRANSFER.benefit_s)
    (leave_out,) = (place for place, step in enumerate(remedy.steps) if step.startswith("Remove the download"))
    assert (leave_out == 1) == (first == "download")
    assert f"{saving_s:.4f} s" in remedy.steps[leave_out]
    (pinned,) = (place for place, step in enumerate(remedy.steps) if "already pinned" in step)
    otherwise = [place for place, step in enumerate(remedy.steps) if step.startswith("If it has to stay")]
    assert all(leave_out < place < pinned for place in otherwise)
    assert bool(otherwise) == (first == "download")


@pytest.mark.parametrize("touched_bytes", [0, 1024])
def test_no_first_use_is_named_of_a_download_that_nobody_touches(touched_bytes: int) -> None:
    """Its wait protects what becomes of the memory."""
    download = PartialDownload(1 << 24, touched_bytes, 0, touched_bytes, 10, 10, 10, "As was seen.", 1.0)
    (remedy,) = identify_remedies([replace(TRANSFER, unnecessary=6, keep=(8,), download=download)])
    of_use = [step for step in remedy.steps if "first use" in step]
    of_memory = [step for step in remedy.steps if "frees or overwrites" in step or "freed or overwritten" in step]
    assert (len(of_use), len(of_memory)) == ((0, 2) if touched_bytes == 0 else (2, 0))


def test_a_wait_that_some_calls_need_is_not_removed() -> None:
    needed_for = ((Because.RESULT_USED, 3), (Because.RELEASED, 1))
    (remedy,) = identify_remedies([replace(EXPLICIT, unnecessary=6, needed_for=needed_for)])
    assert not any("Remove" in step or "in no run" in step for step in remedy.steps)
    assert "in 4 of 10 calls" in remedy.steps[0] and "uses a result" in remedy.steps[0] and "(3)" in remedy.steps[0]
    (whole,) = identify_remedies([EXPLICIT])
    assert "Remove the cudaDeviceSynchronize" in whole.steps[0]


def test_a_free_that_some_calls_need_as_a_wait_says_to_wait_otherwise() -> None:
    (remedy,) = identify_remedies([replace(FREE, unnecessary=9, needed_for=((Because.RESULT_USED, 1),))])
    assert "1 of 10 calls: the CPU uses a result" in remedy.steps[-1]


def test_host_memory_is_pinned_where_it_is_allocated_and_freed() -> None:
    memory = MemoryLink("host memory", "pageable", allocation=5, release=6)
    (remedy,) = identify_remedies([replace(TRANSFER, memory=(memory,))])
    assert PlaceToChange("allocation of the host memory", 5) in remedy.places
    assert PlaceToChange("free of the host memory", 6) in remedy.places
    assert not any("was not observed" in step for step in remedy.steps)


def test_it_is_said_how_many_transfers_use_memory_that_no_named_place_allocates() -> None:
    known = MemoryLink("host memory", "pageable", allocation=5, release=6, occurrences=7)
    unknown = replace(PAGEABLE, occurrences=3)
    (remedy,) = identify_remedies([replace(TRANSFER, memory=(known, unknown))])
    assert PlaceToChange("allocation of the host memory", 5) in remedy.places
    assert not any("was not observed" in step for step in remedy.steps)
    assert any(step.startswith("In 3 of 10 transfers") for step in remedy.steps)


def test_a_repeated_upload_names_the_buffer_to_keep() -> None:
    (remedy,) = identify_remedies([replace(TRANSFER, repeat=9)])
    assert remedy.kind is RemedyKind.REPEATED_TRANSFER
    assert (remedy.occurrences, remedy.of) == (9, 10)
    assert PlaceToChange("allocation of the destination", 1) in remedy.places
    assert PlaceToChange("free of the destination", 2) in remedy.places
    assert any("keep the buffer" in step for step in remedy.steps)


def told(problem: ProblemSite) -> str:
    (remedy,) = identify_remedies([problem])
    return " ".join(remedy.steps)


def test_an_upload_that_never_brought_anything_new_may_go_and_what_was_not_proved_is_said() -> None:
    advice = told(replace(TRANSFER, no_op=9))
    assert "leave this call out" in advice and "const" in advice
    assert "Not proved: that the host data stays the same" in advice
    assert "no kernel then writes the buffer" in advice


@pytest.mark.parametrize(("framework", "said"), [(CUPY, True), (TORCH, True), (PYTHON, False), (None, False)])
def test_what_a_package_does_for_a_repeated_transfer_is_saved_too(framework: Framework | None, said: bool) -> None:
    advice = told(replace(TRANSFER, no_op=9, framework=framework))
    assert ("The saving is at least what is shown" in advice) is said
    assert not said or f"What {framework.name if framework else ''} itself does" in advice
    assert "pinned memory first" not in told(replace(TRANSFER, no_op=9, framework=framework, downloads=True))


@pytest.mark.parametrize("counts", [{"no_op": 9}, {"repeat": 9}, {"unseen": 9}, {"no_op": 8, "changed": 1}])
def test_equal_bytes_from_elsewhere_are_not_taken_for_the_same_data(counts: dict[str, int]) -> None:
    repeated = counts.get("no_op", 9)
    advice = told(replace(TRANSFER, from_elsewhere=7, **counts))
    assert advice.startswith("First check whether these are the same data") and f"7 of {repeated} calls" in advice
    assert "const" not in advice


@pytest.mark.parametrize("counts", [{"no_op": 8}, {"repeat": 8}])
def test_an_upload_that_once_brought_other_bytes_stays(counts: dict[str, int]) -> None:
    advice = told(replace(TRANSFER, changed=1, **counts))
    assert "Keep this call" in advice and "8 of 10 calls" in advice and "1 transferred others" in advice
    assert "leave this call out" not in advice and "const" not in advice


def test_the_first_of_repeated_transfers_is_told_apart_from_those_that_changed() -> None:
    assert "but, besides the first, 1 transferred others" in told(replace(TRANSFER, changed=1, no_op=8))
    assert "but 2 transferred others." in told(replace(TRANSFER, changed=2, no_op=8))
    assert "but 1 transferred others and 2 transferred the same to another place." in told(
        replace(TRANSFER, changed=1, no_op=7, elsewhere=2)
    )
    assert "but 2 transferred the same from another place." in told(
        replace(TRANSFER, downloads=True, no_op=8, elsewhere=2)
    )


@pytest.mark.parametrize("framework", [None, NUMBA])
def test_an_upload_of_what_was_sent_before_to_another_place_uses_what_is_there(framework: Framework | None) -> None:
    advice = told(replace(TRANSFER, repeat=8, elsewhere=2, framework=framework))
    assert "in 10 of 10 calls, the same bytes had been sent before, in 2 of them to another place" in advice
    assert "skip it only" not in advice and "const" not in advice and "Not proved: that the host data" in advice
    assert ("device to device" in advice) is (framework is None)
    assert (NUMBA.sent_once in advice) is (framework is NUMBA)


def test_advice_says_in_how_many_calls_the_destination_was_looked_at() -> None:
    advice = told(replace(TRANSFER, no_op=4, unseen=5))
    assert "at each of the 4 calls where ffm looked, of 9." in advice
    assert "what the device held was not looked at" in told(replace(TRANSFER, unseen=9))
    assert "cannot just be left out" in told(replace(TRANSFER, repeat=4, unseen=5))


def test_an_upload_whose_destination_is_written_in_between_is_replaced_by_a_copy_on_the_device() -> None:
    advice = told(replace(TRANSFER, repeat=9))
    assert "device to device" in advice and "cannot just be left out" in advice
    assert "leave this call out" not in advice


def test_few_bytes_need_no_upload() -> None:
    reset, constant = told(replace(TRANSFER, repeat=9, bytes=4)), told(replace(TRANSFER, no_op=9, bytes=4))
    assert "cudaMemsetAsync" in reset and "cannot just be left out" in reset
    assert "device to device" not in reset and "const" not in reset
    assert "as arguments" in constant and "leave this call out" in constant and "const," not in constant
    assert "cudaMemsetAsync" not in told(replace(TRANSFER, repeat=9, bytes=5000))
    assert "cudaMemsetAsync" not in told(replace(TRANSFER, repeat=9, bytes=4, framework=TORCH))


@pytest.mark.parametrize("counts", [{"no_op": 9}, {"repeat": 9}])
@pytest.mark.parametrize("framework", [CUPY, TORCH, PYTHON])
def test_how_to_upload_once_is_said_in_the_words_of_the_package(framework: Framework, counts: dict[str, int]) -> None:
    advice = told(replace(TRANSFER, framework=framework, **counts))
    assert framework.sent_once in advice
    assert (f"In {framework.name}: " in advice) is (framework.name != "")
    assert "cudaMemcpyAsync" not in advice


def test_a_repeated_download_is_not_told_to_be_uploaded() -> None:
    for changed in (0, 1):
        advice = told(replace(TRANSFER, downloads=True, no_op=8, changed=changed))
        assert "pload" not in advice and "const" not in advice
        assert "Download" in advice


def test_downloads_that_are_overwritten_unread_are_not_gathered() -> None:
    """Of ten, one is used, whole."""
    mostly = PartialDownload(1 << 20, 1 << 20, 0, 1 << 20, 10, 10, 9, "Of 10.0 MiB ...", 1.0)
    advice = told(replace(TRANSFER, unnecessary=0, download=mostly))
    assert "gather" not in advice
    assert "9 of 10 downloads were overwritten or freed untouched" in advice
    scattered = replace(mostly, touched_bytes=1 << 18, untouched=8)
    assert "gather" in told(replace(TRANSFER, unnecessary=0, download=scattered))


@pytest.mark.parametrize("keep", [(), (9,)])
def test_an_explicit_synchronization_goes_and_says_what_stays(keep: tuple[int, ...]) -> None:
    (remedy,) = identify_remedies([replace(EXPLICIT, keep=keep)])
    assert remedy.kind is RemedyKind.UNNECESSARY_SYNCHRONIZATION
    assert remedy.keep == keep
    assert any("cudaStreamWaitEvent" in step for step in remedy.steps)


def test_a_misplaced_synchronization_moves() -> None:
    (remedy,) = identify_remedies([replace(EXPLICIT, unnecessary=0, misplaced=4)])
    assert (remedy.kind, remedy.occurrences) == (RemedyKind.MISPLACED_SYNCHRONIZATION, 4)


def test_a_set_of_managed_memory_is_left_to_the_cpu() -> None:
    managed = MemoryLink("destination", "managed", allocation=1, release=2)
    (remedy,) = identify_remedies([replace(TRANSFER, call="cudaMemset", sets_memory=True, memory=(managed,))])
    assert remedy.kind is RemedyKind.MANAGED_MEMSET


def test_remedies_come_by_benefit_and_only_for_problems() -> None:
    none = replace(FREE, site=8, unnecessary=0)
    found = identify_remedies([none, EXPLICIT, replace(FREE, benefit_s=5.0)])
    assert [remedy.site for remedy in found] == [3, 7]


@pytest.mark.parametrize(
    ("verdicts", "changed", "elsewhere"),
    [
        ([("repeat", 5, 2)], 4, 0),
        ([("repeat", 5, 2), ("copy", 4, 2)], 0, 0),
        ([("no-op", 4, 2), ("repeat", 3, 2), ("copy", 2, 2)], 0, 0),
        ([("repeat", 5, 2), ("copy", 4, 0)], 0, 4),
        ([("repeat", 5, 2), ("copy", 3, 2)], 1, 3),
        ([("repeat", 9, 0)], 1, 0),
        ([("repeat", 8, 2), ("copy", 2, 0)], 0, 1),
        ([("no-op", 9, 2), ("copy", 1, 0)], 0, 0),
    ],
    ids=[
        "others",
        "one content",
        "one content, kept at times",
        "of another site",
        "two contents",
        "none of its own",
        "nothing new",
        "sent elsewhere before, then kept",
    ],
)
def test_bytes_that_went_elsewhere_are_the_same_only_where_a_site_brought_nothing_else(
    verdicts: list[tuple[str, int, int]], changed: int, elsewhere: int
) -> None:
    analysis = sample_analysis()
    transfer = [
        Verdict(kind=kind, because=Because.REPEAT, occurrences=occurrences, first=first)
        for kind, occurrences, first in verdicts
    ]
    site = msgspec.structs.replace(analysis.sites[2], count=10, transfer=transfer, problem_count=5)
    sites = [*analysis.sites[:2], site, *analysis.sites[3:]]
    (found,) = (one for one in problem_sites(msgspec.structs.replace(analysis, sites=sites), "carry") if one.site == 2)
    assert (found.changed, found.elsewhere) == (changed, elsewhere)
