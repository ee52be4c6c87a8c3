"""The batches of an Arrow file, each checked before any of it is decompressed.

Arrow decompresses a batch as soon as it reads it, into buffers as long as the file says: a few kilobytes can declare
gigabytes. So the lengths are read first. They are in the metadata of the batch (apache/arrow, format/Message.fbs) and
in the eight bytes at the start of each compressed buffer.

The batches are read in their order in the file. The footer is not used, because it could name one batch many times.
"""

from __future__ import annotations

import os
import struct
from collections.abc import Iterator
from typing import Any

import pyarrow as pa

from ffm.errors import CauseError

MAGIC = b"ARROW1"
_BEGIN = 8
"""Bytes before the first message."""

_VECTOR_BEGIN = 4
"""Bytes of the count before the structures of a vector."""

_PADDING = 64
"""Writers may round the length of a buffer up to a multiple of this."""

_LENGTH_BYTES = 8
_NOT_COMPRESSED = -1
"""The declared length of a buffer that lies uncompressed in a compressed batch."""

_MESSAGE_HEADER = 2
_BATCH_LENGTH, _BATCH_BUFFERS, _BATCH_COMPRESSION = 0, 2, 3
"""Numbers of fields in the tables `Message` and `RecordBatch`."""


class BatchError(CauseError):
    """A batch declares what its rows and schema do not allow."""


class Batches:
    """The batches of an Arrow file, which are decompressed one by one, on iteration; others refer to the content.

    All columns are numbers without nulls.

    Args:
        content: the whole file, as bytes or mapped.
        compressed_rows: the most rows that a compressed batch may have; 0 if none may be compressed.

    Raises:
        ValueError: It is no Arrow file, has other columns, or a batch declares other lengths than its rows need.
        pa.ArrowException, OSError: Arrow cannot read it; also on iteration.
        MemoryError: Its rows need more memory than this machine has. Compressed, a file of any size can have them.
    """

    def __init__(self, content: Any, compressed_rows: int = 0) -> None:
        size = len(content)
        if size < _BEGIN + len(MAGIC) or content[: len(MAGIC)] != MAGIC or content[size - len(MAGIC) :] != MAGIC:
            raise BatchError("not a whole Arrow file")
        messages = pa.ipc.MessageReader.open_stream(pa.BufferReader(pa.py_buffer(content).slice(_BEGIN)))
        self.schema: Any = pa.ipc.read_schema(messages.read_next_message())
        if not all(pa.types.is_primitive(field.type) for field in self.schema):
            raise BatchError("columns that are no numbers")
        self._messages = list(messages)
        bits = [field.type.bit_width for field in self.schema]
        try:
            self.rows = sum(_checked_rows(message, bits, compressed_rows) for message in self._messages)
        except (struct.error, IndexError) as error:
            raise BatchError("metadata that cannot be read") from error
        if self.rows * sum(bits) // 8 > memory_bytes():
            raise MemoryError(f"{self.rows} rows of {sum(bits)} bits")

    def __iter__(self) -> Iterator[Any]:
        return (pa.ipc.read_record_batch(message, self.schema) for message in self._messages)


def memory_bytes() -> int:
    """Return how much memory this machine has."""
    return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")


def _checked_rows(message: Any, bits: list[int], compressed_rows: int) -> int:
    """Return a batch's rows. Raises `BatchError` if a buffer has another length than they need; `bits` of a value, by
    column.
    """
    if message.type != "record batch":
        raise BatchError(f"a {message.type} among the batches")
    if message.metadata_version != pa.ipc.MetadataVersion.V5:  # earlier ones may hide that they are compressed
        raise BatchError("metadata of an earlier version")
    metadata, body = memoryview(message.metadata), memoryview(message.body)
    batch = _Table.root(metadata).table(_MESSAGE_HEADER)
    rows = batch.number(_BATCH_LENGTH)
    compressed = batch.has(_BATCH_COMPRESSION)
    buffers = batch.pairs(_BATCH_BUFFERS)
    if rows < 0 or (compressed and rows > compressed_rows) or len(buffers) != 2 * len(bits):
        raise BatchError(f"{len(buffers)} buffers of {rows} rows")
    for place, (offset, length) in enumerate(buffers):
        if offset < 0 or length < 0 or offset + length > len(body):
            raise BatchError("a buffer outside of its batch")
        if compressed and length:
            (declared,) = struct.unpack_from("<q", body, offset)
            length = length - _LENGTH_BYTES if declared == _NOT_COMPRESSED else declared
        least = 0 if place % 2 == 0 else -(-rows * bits[place // 2] // 8)  # a bitmap of nulls, then the values
        if not least <= length <= -(-least // _PADDING) * _PADDING:
            raise BatchError(f"a buffer of {length} bytes for {rows} rows")
    return rows


class _Table:
    """A table of a FlatBuffer: just what a batch's metadata needs. Arrow has verified the buffer's structure."""

    def __init__(self, content: memoryview, place: int) -> None:
        self._content = content
        self._place = place
        (back,) = struct.unpack_from("<i", content, place)
        self._fields = place - back

    @classmethod
    def root(cls, content: memoryview) -> _Table:
        """Return the table that the buffer is about."""
        return cls(content, *struct.unpack_from("<I", content, 0))

    def _offset(self, field: int) -> int:
        """Return where a field is from the table's start; 0 if it has its default."""
        (bytes_of_fields,) = struct.unpack_from("<H", self._content, self._fields)
        entry = 4 + 2 * field
        return int(struct.unpack_from("<H", self._content, self._fields + entry)[0]) if entry < bytes_of_fields else 0

    def _target(self, field: int) -> int:
        """Return the place that a field refers to."""
        place = self._place + self._offset(field)
        return place + int(struct.unpack_from("<I", self._content, place)[0])

    def has(self, field: int) -> bool:
        """Return whether the field is there."""
        return self._offset(field) != 0

    def number(self, field: int) -> int:
        """Return a 64-bit number; 0 if it has its default."""
        place = self._place + self._offset(field)
        return int(struct.unpack_from("<q", self._content, place)[0]) if self.has(field) else 0

    def table(self, field: int) -> _Table:
        """Return the table that a field refers to.

        Raises:
            BatchError: It is not there.
        """
        if not self.has(field):
            raise BatchError("metadata without a batch")
        return _Table(self._content, self._target(field))

    def pairs(self, field: int) -> list[tuple[int, int]]:
        """Return a vector of pairs of 64-bit numbers."""
        if not self.has(field):
            return []
        place = self._target(field)
        (count,) = struct.unpack_from("<I", self._content, place)
        numbers = struct.unpack_from(f"<{2 * count}q", self._content, place + _VECTOR_BEGIN)
        return list(zip(numbers[::2], numbers[1::2], strict=True))
