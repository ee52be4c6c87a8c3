"""Arrow files that declare more than they may are refused before anything is decompressed."""

from __future__ import annotations

import struct
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.feather as feather
import pytest

from ffm.errors import DocumentError
from ffm.model.timeline import Timeline
from ffm.results.columnar import arrow_batches, compressed_tables
from ffm.results.columnar.arrow_batches import BatchError, Batches
from ffm.results.columnar.tables import read_table, write_table
from ffm.results.columnar.timeline_file import load_results_timeline, save_timeline

ROWS = 1001
HUGE = 1 << 31
"""Bytes that a crafted buffer declares: enough to be seen, and not to end a test machine."""


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """A timeline of few different numbers, so that all columns are compressed; some need 64 bits."""
    long, short, kind = np.zeros(ROWS, np.int64), np.zeros(ROWS, np.int32), np.zeros(ROWS, np.uint8)
    start = np.arange(ROWS, dtype=np.int64)
    timeline = Timeline(
        thread=short, start=start, duration=long, wait=long, gap=long, site=short, kind=kind, problem=kind,
        first_use=long + (1 << 40), occurrences=long,
    )  # fmt: skip
    save_timeline(timeline, tmp_path / "t.arrow")
    return tmp_path / "t.arrow"


def replace_once(path: Path, before: bytes, after: bytes) -> None:
    content = path.read_bytes()
    assert before in content
    path.write_bytes(content.replace(before, after, 1))


@pytest.mark.parametrize("size", [1, 4, 8])
@pytest.mark.parametrize("declared", [HUGE, 0, -2, -(1 << 63)])
def test_a_buffer_that_unpacks_to_other_sizes_is_refused_before_it_does(path: Path, size: int, declared: int) -> None:
    load_results_timeline(path)
    replace_once(path, struct.pack("<q", size * ROWS), struct.pack("<q", declared))
    most = pa.default_memory_pool().max_memory()
    with pytest.raises(DocumentError, match=r"t\.arrow"):
        load_results_timeline(path)
    assert pa.default_memory_pool().max_memory() < most + HUGE / 2


def test_a_compressed_batch_has_no_more_rows_than_are_ever_written(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(compressed_tables, "BATCH_ROWS", ROWS - 1)
    with pytest.raises(DocumentError, match=r"t\.arrow"):
        load_results_timeline(path)


def test_rows_are_counted_before_room_is_made_for_them(path: Path) -> None:
    replace_once(path, struct.pack("<q", ROWS), struct.pack("<q", 1 << 60))
    with pytest.raises(BatchError):
        Batches(path.read_bytes(), 1 << 62)


@pytest.mark.parametrize("codec", ["zstd", "lz4"])
def test_tables_that_are_mapped_cannot_be_compressed(tmp_path: Path, codec: str) -> None:
    feather.write_feather(pa.table({"a": np.zeros(ROWS, np.int64)}), str(tmp_path / "a.arrow"), compression=codec)
    with pytest.raises(DocumentError, match=r"a\.arrow"):
        read_table(tmp_path / "a.arrow")


def write(path: Path, table: pa.Table, **options: object) -> None:
    settings = pa.ipc.IpcWriteOptions(**options)
    with pa.OSFile(str(path), "wb") as file, pa.ipc.new_file(file, table.schema, options=settings) as writer:
        writer.write_table(table)


def test_batches_of_earlier_versions_may_be_compressed_unseen(tmp_path: Path) -> None:
    write(tmp_path / "a.arrow", pa.table({"a": np.zeros(ROWS)}), metadata_version=pa.ipc.MetadataVersion.V4)
    with pytest.raises(BatchError, match="version"):
        Batches((tmp_path / "a.arrow").read_bytes())


@pytest.mark.parametrize(
    "column",
    [
        pa.array(["text"] * 3),
        pa.array(["one", "two", "one"]).dictionary_encode(),
        pa.array([[1], [2], [3]]),
        pa.nulls(3),
        pa.array([1, None, 3]),
    ],
    ids=["text", "dictionary", "lists", "nothing", "nulls"],
)
def test_columns_are_numbers_without_nulls(tmp_path: Path, column: pa.Array) -> None:
    write(tmp_path / "a.arrow", pa.table({"a": column}))
    with pytest.raises(BatchError):
        Batches((tmp_path / "a.arrow").read_bytes())


@pytest.mark.parametrize("rows", [0, 1, 7, ROWS])
@pytest.mark.parametrize("kind", [np.bool_, np.uint8, np.int32, np.float64])
def test_tables_survive_their_files(tmp_path: Path, rows: int, kind: type[np.generic]) -> None:
    column = np.arange(rows).astype(kind)
    write_table({"a": column}, tmp_path / "a.arrow")
    again = read_table(tmp_path / "a.arrow")["a"]
    assert again.dtype == column.dtype
    assert (again == column).all()


def test_a_file_cut_anywhere_is_refused(path: Path) -> None:
    content = path.read_bytes()
    for end in range(0, len(content), 97):
        with pytest.raises((BatchError, ValueError, OSError, pa.ArrowException)):
            list(Batches(content[:end], ROWS))


def test_more_rows_than_fit_into_the_memory_are_not_decompressed(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A file of many batches that all say what they hold, and compress very well."""
    content = path.read_bytes()
    needed = sum(batch.nbytes for batch in Batches(content, ROWS))
    monkeypatch.setattr(arrow_batches, "memory_bytes", lambda: needed)
    assert list(Batches(content, ROWS))
    monkeypatch.setattr(arrow_batches, "memory_bytes", lambda: needed // 2)
    with pytest.raises(MemoryError):
        Batches(content, ROWS)


def test_the_columns_of_a_stored_table_are_mapped_not_copied(tmp_path: Path) -> None:
    write_table({"start": np.arange(200_000)}, tmp_path / "events.arrow")
    column = read_table(tmp_path / "events.arrow")["start"]
    assert not column.flags.owndata
    assert (column == np.arange(200_000)).all()


def test_writing_to_a_mapped_column_leaves_the_file_as_it_is(tmp_path: Path) -> None:
    write_table({"start": np.arange(200_000)}, tmp_path / "events.arrow")
    before = (tmp_path / "events.arrow").read_bytes()
    column = read_table(tmp_path / "events.arrow")["start"]
    column[:] = 0
    assert (tmp_path / "events.arrow").read_bytes() == before
    assert (read_table(tmp_path / "events.arrow")["start"] == np.arange(200_000)).all()
