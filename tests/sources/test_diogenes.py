"""Importing Diogenes's files: what it printed follows from them, and bad files are refused in one sentence."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from ffm.errors import DocumentError
from ffm.model.timeline import Kind, Problem
from ffm.results.documents.analysis import Analysis
from ffm.results.stored import open_results, subsequence
from ffm.sources.diogenes import import_diogenes
from tests.sources.diogenes_records import PUBLISHED, loop_records, needs_published_files, record, write_folder


@pytest.fixture(scope="module")
def published(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("published")
    import_diogenes(PUBLISHED, folder)
    return folder


def operations(analysis: Analysis, sequence: int) -> list[tuple[str, str, int]]:
    sites = [analysis.sites[operation.site] for operation in analysis.sequences[sequence - 1].operations]
    return [(site.call, site.file, site.line) for site in sites]


@needs_published_files
def test_published_subsequence_of_the_dissertation(published: Path) -> None:
    """Figure 5.4: entries 10 to 23, 137.136 s, 10.08 % of execution time."""
    answer = subsequence(open_results(published), 1, 10, 23, "bound")
    assert f"{answer.seconds:.3f} {answer.percent:.2f}" == "137.136 10.08"
    assert len(answer.operations) == 14
    assert 0 < answer.benefit.carry_s < open_results(published).document.wall_s


@needs_published_files
def test_all_published_subsequences(published: Path) -> None:
    results = open_results(published)
    sequences = [operations(results.document, number + 1) for number in range(2)]
    choices = json.loads((PUBLISHED / "subsequences.json").read_text())
    assert len(choices) == 281
    for choice in choices:
        wanted = [(part["call"], part["file"], part["line"]) for part in choice["operations"]]
        places = [
            (number, start)
            for number, sequence in enumerate(sequences, 1)
            for start in range(1, len(sequence) - len(wanted) + 2)
            if sequence[start - 1 : start - 1 + len(wanted)] == wanted
        ]
        assert len(places) == 1
        number, start = places[0]
        answer = subsequence(results, number, start, start + len(wanted) - 1, "bound")
        assert answer.seconds == pytest.approx(choice["recoverable_s"], abs=0.001)


@needs_published_files
def test_published_folds(published: Path) -> None:
    folds = {fold.name: fold.benefit.bound_s for fold in open_results(published).document.folds}
    assert folds["cudaFree"] == pytest.approx(214.026, abs=0.001)
    assert folds["cudaMemcpy"] == pytest.approx(95.251, abs=0.001)
    assert folds["cudaDeviceReset"] == pytest.approx(4.112, abs=0.001)
    assert folds["cudaDeviceSynchronize"] == pytest.approx(1.000, abs=0.001)


@needs_published_files
def test_published_sequences(published: Path) -> None:
    analysis = open_results(published).document
    first, second = analysis.sequences[:2]
    assert first.benefit.bound_s == pytest.approx(155.785, abs=0.001)
    assert second.benefit.bound_s == pytest.approx(64.027, abs=0.001)
    assert operations(analysis, 1)[0] == ("cudaMemcpy", "als.cu", 738)
    assert operations(analysis, 1)[9] == ("cudaFree", "als.cu", 856)
    assert operations(analysis, 1)[22] == ("cudaFree", "als.cu", 987)
    assert operations(analysis, 2)[0] == ("cudaFree", "als.cu", 994)
    # Diogenes's numbers are 23 and 8; the library call that follows counts, but its stack names no CUDA call.
    assert operations(analysis, 1)[23:] == [("cublasSasum_v2", "als.cu", 990)]
    assert operations(analysis, 2)[8:] == [("cublasSasum_v2", "als.cu", 1018)]
    assert {first.recurrences, second.recurrences} == {5000}


@pytest.fixture
def imported(tmp_path: Path) -> Analysis:
    return import_diogenes(write_folder(tmp_path / "made-up", loop_records()), tmp_path / "results")


def test_a_sequence_misses_the_first_operation_of_the_loop_as_diogenes_does(imported: Analysis) -> None:
    assert operations(imported, 1) == [("cudaMemcpy", "solve.cu", 20), ("cudaFree", "solve.cu", 30)]
    assert imported.sequences[0].recurrences == 10
    assert imported.sequences[0].ends_at == 5
    assert imported.sequences[0].benefit.bound_s == pytest.approx(min(6.0 + 5.0, 1.0 + 4.0))
    assert [operation.problems for operation in imported.sequences[0].operations] == [
        ["synchronization", "transfer"],
        ["synchronization"],
    ]


def test_what_was_used_ends_a_sequence_though_its_transfer_repeats(tmp_path: Path) -> None:
    """As in cuIBM: the sequence that Diogenes printed with 80.535 s ends before a copy of a repeated value, used."""
    records = loop_records()
    records[5]["Transfer Count"], records[5]["TransferCollisions"] = 10, [6] * 10
    analysis = import_diogenes(write_folder(tmp_path / "solver", records), tmp_path / "results")
    assert [line for _, _, line in operations(analysis, 1)] == [20, 30]


def test_folds_by_hand(imported: Analysis) -> None:
    folds = {fold.name: fold for fold in imported.folds}
    # Line 10: wait 1 and call 2 of a total of 3. Line 30: wait 3, less than the gap of 4, and call 2.
    assert folds["cudaFree"].benefit.bound_s == pytest.approx((1 + 2) + (3 + 2))
    # Line 5: half a second each of wait and call. Line 20: the gap of 1, and nine of ten calls of 0.2 s.
    assert folds["cudaMemcpy"].benefit.bound_s == pytest.approx((0.5 + 0.5) + (1 + 9 * 0.2))
    # Needed, but counted anyway, as in the published fold: the gap of 2, no calls.
    assert folds["cudaDeviceSynchronize"].benefit.bound_s == pytest.approx(2.0)
    # The last operation has no gap; Diogenes counts all of its time.
    assert folds["cudaDeviceReset"].benefit.bound_s == pytest.approx(1.0)
    assert "cudaMallocHost" not in folds
    assert [part.name for part in folds["cudaFree"].parts] == ["solve<...>"]


def test_carry_by_hand(imported: Analysis) -> None:
    sites = {site.line: site.benefit.carry_s for site in imported.sites}
    assert sites[10] == pytest.approx(2 + 1)
    assert sites[30] == pytest.approx(2 + 3)
    # Nine tenths of the call. The wait of 4 is in two rows, of one and of nine occurrences, with a tenth and nine
    # tenths of the gap of 1 behind each; what is left moves into the free at line 30.
    assert sites[20] == pytest.approx(1.8 + 1.0)
    assert sites[40] == 0
    # Calls of 1.8 and 2. Of the waits of 4 and 3, the gaps of 1 and 4 absorb 5, and the call at line 40 itself 0.5.
    assert imported.sequences[0].benefit.carry_s == pytest.approx(1.8 + 2 + 5.5)


def test_rows_are_in_program_order_and_split_where_only_some_transfers_repeat(tmp_path: Path) -> None:
    shuffled = loop_records()[::-1]
    import_diogenes(write_folder(tmp_path / "in", shuffled), tmp_path / "out")
    table = open_results(tmp_path / "out").timeline
    assert table.site.tolist() == [0, 1, 2, 3, 3, 4, 5, 6]
    assert table.occurrences.tolist() == [1, 1, 10, 1, 9, 10, 10, 1]
    assert table.duration.tolist()[3:5] == [600_000_000, 5_400_000_000]
    duplicate = Problem.UNNECESSARY_TRANSFER
    assert [bool(problem & duplicate) for problem in table.problem.tolist()] == [False] * 4 + [True] + [False] * 3
    assert table.kind.tolist()[-2:] == [Kind.SYNCHRONIZATION, Kind.OTHER]


def test_verdicts_carry_the_reason_and_the_synchronization_to_keep(imported: Analysis) -> None:
    by_line = {site.line: site for site in imported.sites}
    (conditional,) = by_line[30].synchronization
    # Dependency 3 counts records from 0: the fourth, at line 20.
    assert (conditional.kind, conditional.keep) == ("conditionally unnecessary", 3)
    assert [verdict.kind for verdict in by_line[40].synchronization] == ["required"]
    assert [(verdict.kind, verdict.occurrences) for verdict in by_line[20].transfer] == [
        ("repeat", 9),
        ("needed", 1),
    ]


def test_records_without_occurrences_are_left_out(tmp_path: Path) -> None:
    records = [*loop_records(), record(8, "cudaMemcpy", 60, count=0, tf_id=0)]
    analysis = import_diogenes(write_folder(tmp_path / "in", records), tmp_path / "out")
    assert len(analysis.sites) == 7


def damaged(name: str, records: list[dict[str, Any]]) -> str | bytes:
    whole = json.dumps(records)
    without_stack = [{key: value for key, value in entry.items() if key != "Stack"} for entry in records]
    return {
        "empty": "",
        "truncated": whole[: len(whole) // 2],
        "not a list": "{}",
        "another shape": json.dumps([{"name": 1}]),
        "a field of another type": whole.replace('"count": 10', '"count": "ten"', 1),
        "no stack": json.dumps(without_stack),
        "no records": "[]",
        "not text": b"\xff\xfe\x00",
        "negative time": whole.replace('"total_time": 6.0', '"total_time": -6.0', 1),
        "no frames": json.dumps([entry | {"Stack": []} for entry in records]),
    }[name]


@pytest.mark.parametrize(
    "damage",
    ["empty", "truncated", "not a list", "another shape", "a field of another type", "no stack", "no records",
     "not text", "negative time", "no frames"],
)  # fmt: skip
def test_damaged_records_are_refused_in_one_sentence(tmp_path: Path, damage: str) -> None:
    folder = write_folder(tmp_path / "in", loop_records())
    content = damaged(damage, loop_records())
    (folder / "combined_stacks.json").write_bytes(content if isinstance(content, bytes) else content.encode())
    with pytest.raises(DocumentError, match=r"combined_stacks\.json") as error:
        import_diogenes(folder, tmp_path / "out")
    assert "\n" not in str(error.value)
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize("content", ["", "[[1.5", "{}", "[1.5]", '[["1.5", ""]]', '[[-1.5, ""]]', "\0"])
def test_a_damaged_list_of_sequences_is_refused_in_one_sentence(tmp_path: Path, content: str) -> None:
    folder = write_folder(tmp_path / "in", loop_records())
    (folder / "sequential_pproc.json").write_text(content)
    with pytest.raises(DocumentError, match=r"sequential_pproc\.json") as error:
        import_diogenes(folder, tmp_path / "out")
    assert "\n" not in str(error.value)
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize("time", ["", "soon", "0", "-3", "nan", "inf", "1 2"])
def test_a_wrong_run_time_is_refused(tmp_path: Path, time: str) -> None:
    folder = write_folder(tmp_path / "in", loop_records(), time)
    with pytest.raises(DocumentError, match=r"ttime\.txt"):
        import_diogenes(folder, tmp_path / "out")


@pytest.mark.parametrize("name", ["combined_stacks.json", "ttime.txt"])
def test_a_missing_file_is_named(tmp_path: Path, name: str) -> None:
    folder = write_folder(tmp_path / "in", loop_records())
    (folder / name).unlink()
    with pytest.raises(DocumentError, match="does not exist") as error:
        import_diogenes(folder, tmp_path / "out")
    assert name in str(error.value)


def test_a_folder_that_is_a_file_is_refused(tmp_path: Path) -> None:
    (tmp_path / "in").write_text("")
    with pytest.raises(DocumentError, match="cannot be read"):
        import_diogenes(tmp_path / "in", tmp_path / "out")
