"""The collector under the sanitizers, without Frida; its recording is read back."""

from __future__ import annotations

import subprocess
from pathlib import Path

import numpy as np
import pytest

from ffm.driver.catalogue import load_catalogue
from ffm.driver.generate import include_text
from ffm.instrument.recording.layout import constant
from ffm.instrument.recording.reader import Recording, read_recordings
from tests.conftest import cuda_include
from tests.native.layers import includes_of, sources_of

pytestmark = pytest.mark.sanitized

HERE = Path(__file__).parent
KINDS_OF_EXTENTS = ("FOLLOWED", "TOUCHED", "LOST")


@pytest.fixture(scope="module")
def recordings(tmp_path_factory: pytest.TempPathFactory) -> list[Recording]:
    folder = tmp_path_factory.mktemp("native")
    (folder / "catalogue.inc").write_text(include_text(load_catalogue()))
    program = folder / "collector_test"
    subprocess.run(
        [
            "gcc", "-std=c11", "-D_GNU_SOURCE", "-O1", "-g", "-Wall", "-Wextra", "-Werror", "-fno-sanitize-recover=all",
            "-fsanitize=address,undefined", "-fno-optimize-sibling-calls", f"-I{folder}", *includes_of("collector"),
            "-isystem", str(cuda_include()), "-o", str(program), str(HERE / "collector_test.c"),
            str(HERE / "reached_memory.c"), str(HERE / "downloaded_again.c"),
            str(HERE / "sources_sent_again.c"),
            *map(str, sources_of("collector")), "-lunwind", "-lpthread", "-lzstd", "-llz4",
        ],
        check=True,
    )  # fmt: skip
    records = folder / "recordings"
    records.mkdir()
    # The collector must handle the faults of watched pages before the sanitizer reports them.
    run = subprocess.run(
        [str(program), str(records)],
        env={"ASAN_OPTIONS": "detect_leaks=0:allow_user_segv_handler=1:handle_segv=0"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert run.returncode == 0, run.stderr
    return read_recordings(records)


def operations_of(recording: Recording, name: str) -> np.ndarray:
    return recording.operations[recording.operations["function"] == load_catalogue()[name].index]


def of_downloads_again(recording: Recording, rows: np.ndarray) -> np.ndarray:
    """Return which rows are about the asynchronous downloads of downloaded_again.c."""
    return np.isin(rows["operation"], operations_of(recording, "cuMemcpyDtoHAsync_v2")["number"])


def test_every_call_of_every_thread_is_recorded(recordings: list[Recording]) -> None:
    parent = recordings[0]
    synchronizations = operations_of(parent, "cuCtxSynchronize")
    assert len(synchronizations) == 4 * 5000 + 3
    threads, counts = np.unique(synchronizations["thread"], return_counts=True)
    assert sorted(counts.tolist()) == [3, 5000, 5000, 5000, 5000]
    for thread in threads[counts > 3]:
        numbers = synchronizations["number"][synchronizations["thread"] == thread]
        assert numbers.tolist() == list(range(5000))
    assert parent.lost == 0


def test_as_many_launches_are_timed_as_there_is_room_for_before_the_gpu_is_over(recordings: list[Recording]) -> None:
    parent = recordings[0]
    launches = operations_of(parent, "cuLaunchKernel")["number"][:-1]  # the last is for the managed variable
    assert len(launches) == 3000
    timed = parent.gpu_times["operation"]
    assert timed[timed <= launches[-1]].tolist() == launches[:2048].tolist()
    assert set(parent.gpu_times["nanoseconds"].tolist()) == {250_000}


def test_a_forked_child_records_into_a_file_of_its_own(recordings: list[Recording]) -> None:
    assert len(recordings) == 2
    parent, child = recordings
    assert child.parent_id == parent.process_id
    assert len(child.operations) == 1
    assert len(child.stacks) == 2  # the empty one, and that of the call


def test_watches_end_as_the_program_used_the_memory(recordings: list[Recording]) -> None:
    parent = recordings[0]
    accesses = parent.accesses[parent.accesses["kind"] < constant("FFM_ACCESS_CLOCK")]
    kinds = accesses["kind"][~of_downloads_again(parent, accesses)].tolist()
    read, write = constant("FFM_ACCESS_READ"), constant("FFM_ACCESS_WRITE")
    # A result that is read, one overwritten by the next transfer before it is written, one next to other data. The
    # sources are pageable, so they were staged when the calls returned. Then one is sent and written eight times.
    # Finally a managed variable is read.
    assert kinds == [read, write, read, *[write] * 8, read]


def test_downloads_whose_pages_stay_closed_are_told_apart(recordings: list[Recording]) -> None:
    """Those that the next one overwrites untouched, and the three that are read after a wait."""
    parent = recordings[0]
    reads = parent.accesses[parent.accesses["kind"] == constant("FFM_ACCESS_READ")]
    intact = parent.extents[parent.extents["kind"] == constant("FFM_EXTENT_INTACT")]
    read = set(reads["operation"][of_downloads_again(parent, reads)].tolist())
    untouched = set(intact["operation"][of_downloads_again(parent, intact)].tolist())
    assert len(read) == 3
    assert len(untouched - read) > 100


def test_each_reader_of_a_clock_is_told_or_that_some_were_not_seen(recordings: list[Recording]) -> None:
    parent = recordings[0]
    reads = parent.accesses[parent.accesses["kind"] == constant("FFM_ACCESS_CLOCK")]
    # Of the two readers the same frames call, then of many; the empty stack stands for any.
    first, second, *others = reads["stack"].tolist()
    assert first != second
    assert 0 not in (first, second)
    assert [stack for stack in others if stack == 0] == [0]
    assert others[-1] == 0


def test_what_is_touched_of_downloads_is_told_by_page(recordings: list[Recording]) -> None:
    extents = recordings[0].extents[~of_downloads_again(recordings[0], recordings[0].extents)]
    page = 4096
    told = []
    for operation in np.unique(extents["operation"]):
        mine = extents[extents["operation"] == operation]
        sums = [int(mine["bytes"][mine["kind"] == constant(f"FFM_EXTENT_{kind}")].sum()) for kind in KINDS_OF_EXTENTS]
        told.append(tuple(sums))
    assert told == [(3 * page, page, 0), (3 * page, 0, 0), (3 * page, page, 0), (64, 64, 0)]


def test_contents_tell_what_the_device_holds_already(recordings: list[Recording]) -> None:
    parent = recordings[0]
    uploads = operations_of(parent, "cuMemcpyHtoD_v2")["number"]
    contents = parent.contents[np.isin(parent.contents["operation"], uploads)]
    known = (contents["flags"] & constant("FFM_CONTENT_DESTINATION_KNOWN")) != 0
    assert known.all()
    held = (contents["hash"] == contents["destination_hash"]).all(axis=1)
    assert held.tolist() == [True, False, False, True]
    assert (contents["hash"][0] == contents["hash"][2]).all()
    assert (contents["hash"][0] != contents["hash"][1]).any()


def test_stacks_begin_at_the_caller_of_the_driver_function(recordings: list[Recording]) -> None:
    parent = recordings[0]
    stacks = {parent.stacks[number].frames[0] for number in operations_of(parent, "cuMemcpyHtoD_v2")["stack"]}
    program = parent.modules[next(iter(stacks))[0] or 0]
    assert program.path.endswith("collector_test")
    assert len(stacks) == 4  # four call sites in watch_source
