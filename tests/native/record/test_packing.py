"""What the collector packs is what the reader unpacks; what it never packed is refused, or read as something."""

from __future__ import annotations

import ctypes
import itertools
import subprocess
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from ffm.driver.catalogue import load_catalogue
from ffm.driver.generate import include_text
from ffm.instrument.recording.layout import constant, record_type
from ffm.instrument.recording.packing import CONTROL, PackingError, first_number, unpack
from ffm.instrument.recording.reader import read_recording
from tests.native.layers import includes_of, sources_of
from tests.native.loading import LOADED_OFTEN, loaded_anew

KINDS = {
    "ffm_operation": "FFM_CHUNK_OPERATIONS",
    "ffm_content": "FFM_CHUNK_CONTENTS",
    "ffm_access": "FFM_CHUNK_ACCESSES",
    "ffm_part": "FFM_CHUNK_PARTS",
    "ffm_extent": "FFM_CHUNK_EXTENTS",
    "ffm_gpu_time": "FFM_CHUNK_GPU_TIMES",
}


class Packer(ctypes.Structure):
    """`ffm_packer` of packing.h."""

    _fields_ = (
        ("chunk", ctypes.c_void_p),
        ("written", ctypes.c_uint64),
        ("offset", ctypes.c_uint64),
        ("recording", ctypes.c_uint32),
        ("next", ctypes.c_void_p),
        ("mark", ctypes.c_uint64),
        ("last", ctypes.c_void_p),
        ("last_bytes", ctypes.c_size_t),
    )


@pytest.fixture(scope="module")
def library(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The recording file and the packing."""
    folder = tmp_path_factory.mktemp("packing")
    (folder / "catalogue.inc").write_text(include_text(load_catalogue()))
    library: Path = folder / "libpacking.so"
    subprocess.run(
        [
            "gcc", "-std=c11", "-D_GNU_SOURCE", "-O1", "-g", "-Wall", "-Wextra", "-Werror", "-fPIC", "-shared",
            LOADED_OFTEN, "-fsanitize=undefined", "-fno-sanitize-recover=all", f"-I{folder}", *includes_of("record"),
            "-o", str(library), *map(str, sources_of("record")), "-lpthread",
        ],
        check=True,
    )  # fmt: skip
    return library


@pytest.fixture(scope="module")
def packing(library: Path) -> ctypes.CDLL:
    """The same, with a file that is open."""
    loaded = ctypes.CDLL(str(library))
    assert loaded.ffm_sink_open(str(library.parent).encode(), 0)
    return loaded


class Packed:
    """Records that the collector has packed, chunk by chunk."""

    def __init__(self, packing: ctypes.CDLL, structure: str) -> None:
        self._packing, self._structure = packing, structure
        self._packer = Packer()
        self._earlier: list[tuple[NDArray[np.uint8], int]] = []

    def add(self, record: NDArray[Any], slot: int) -> None:
        before = self.chunk() if self._packer.chunk else None
        place, packer = ctypes.c_void_p(record.ctypes.data), ctypes.byref(self._packer)
        if self._structure == "ffm_operation":
            assert self._packing.ffm_pack_operation(packer, 0, place)
        else:
            assert self._packing.ffm_pack_record(packer, constant(KINDS[self._structure]), 0, slot, place)
        if before is not None and self.chunk()[1] == 1:
            self._earlier.append(before)

    def chunk(self) -> tuple[NDArray[np.uint8], int]:
        """What follows the current chunk's header, and how many records are complete."""
        layout = record_type("ffm_chunk")
        header = np.frombuffer(ctypes.string_at(self._packer.chunk, layout.itemsize), layout)[0]
        whole = ctypes.string_at(self._packer.chunk, int(header["capacity"]))
        return np.frombuffer(whole, np.uint8)[layout.itemsize :], int(header["used"])

    def chunks(self) -> list[tuple[NDArray[np.uint8], int]]:
        return [*self._earlier, self.chunk()]

    def release(self) -> None:
        self._packing.ffm_packer_release(ctypes.byref(self._packer))


def pack(packing: ctypes.CDLL, structure: str, records: NDArray[Any], slots: list[int]) -> Packed:
    packed = Packed(packing, structure)
    for place, slot in enumerate(slots):
        packed.add(records[place : place + 1], slot)
    return packed


NUMBERS = st.one_of(st.just(0), st.integers(0, 300), st.integers(0, 2**33), st.integers(0, 2**64 - 1))


@given(st.data(), st.sampled_from(sorted(KINDS)))
def test_what_is_packed_is_unpacked(packing: ctypes.CDLL, data: st.DataObject, structure: str) -> None:
    layout = record_type(structure)
    row = st.lists(NUMBERS, min_size=layout.itemsize // 8, max_size=layout.itemsize // 8)
    rows = data.draw(st.lists(row, min_size=1, max_size=30))
    slots = data.draw(st.lists(st.integers(0, 600), min_size=len(rows), max_size=len(rows)))
    records = np.array(rows, "<u8").view(layout).reshape(-1)
    packed = pack(packing, structure, records, slots)
    try:
        room, count = packed.chunk()
        assert count == len(records)
        for complete, many in itertools.product((0, count // 2, count), (False, True)):  # killed writers leave a part
            assert (unpack(room, complete, structure, many=many) == records[:complete]).all()
        control = int(room[-CONTROL.itemsize :].view(CONTROL)[0])
        assert first_number(control, room[:8].tobytes()) % 2**64 == int(records.view("<u8")[0])
    finally:
        packed.release()


def test_each_chunk_is_read_without_the_others(packing: ctypes.CDLL) -> None:
    """Those of a thread that makes the same calls over and over, and some others."""
    random = np.random.default_rng(5)
    operations = np.zeros(20_000, record_type("ffm_operation"))
    operations["duration"] = random.integers(100, 200_000, len(operations))
    operations["wait"] = operations["duration"] // 2
    operations["start"] = np.cumsum(operations["duration"]) + 10**15
    operations["stack"] = random.integers(0, 1000, len(operations))
    operations["destination"] = random.integers(0, 2**40, len(operations))
    packed = pack(packing, "ffm_operation", operations, [0] * len(operations))
    chunks = packed.chunks()
    assert len(chunks) > 2
    position = 0
    for room, count in chunks:
        assert (unpack(room, count, "ffm_operation") == operations[position : position + count]).all()
        position += count
    assert position == len(operations)
    packed.release()


def test_an_operation_like_the_one_before_takes_little_room(packing: ctypes.CDLL) -> None:
    operations = np.zeros(1000, record_type("ffm_operation"))
    operations["start"] = 10**15 + 3000 * np.arange(1000)
    operations["duration"], operations["destination"], operations["stack"] = 2000, 2**40, 7
    operations["probe"] = 250 + np.arange(1000) % 50
    packed = pack(packing, "ffm_operation", operations, [0] * 1000)
    room, count = packed.chunk()
    taken = np.flatnonzero(room[: len(room) - count * CONTROL.itemsize])[-1] + 1 + count * CONTROL.itemsize
    assert taken < 9 * 1000
    packed.release()


@given(st.binary(max_size=200), st.integers(0, 60), st.sampled_from(sorted(KINDS)))
def test_other_bytes_are_refused_or_read_as_so_many_records(room: bytes, count: int, structure: str) -> None:
    content = np.frombuffer(room, np.uint8)
    try:
        records = unpack(content, count, structure)
    except PackingError:
        with pytest.raises(PackingError):
            unpack(content, count, structure, many=True)
        return
    assert len(records) == count
    assert count * CONTROL.itemsize <= len(room)
    assert unpack(content, count, structure, many=True).tobytes() == records.tobytes()


OPERATIONS = 100_000


@pytest.mark.parametrize(
    ("kept_s", "many"), [(0.0, OPERATIONS - 1), (1e-9, OPERATIONS), (1e9, OPERATIONS)], ids=["all", "last", "most"]
)
def test_a_recording_of_the_last_seconds_stays_as_large(
    library: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kept_s: float, many: int
) -> None:
    """0 keeps everything, and so does more than the machine has been running for. More than `many` operations are read
    by compiled code.
    """
    monkeypatch.setattr("ffm.instrument.recording.chunks.MANY_ROWS", many)
    native = loaded_anew(library)
    native.ffm_sink_keep(ctypes.c_uint64(round(kept_s * 1e9)))
    assert native.ffm_sink_open(str(tmp_path).encode(), 0)
    native.ffm_sink_new_thread()
    native.ffm_sink_lost()  # the stacks that the operations name: otherwise the reader would refuse them
    packer, record = Packer(), np.zeros(1, record_type("ffm_operation"))
    place, pack_one = ctypes.c_void_p(record.ctypes.data), native.ffm_pack_operation
    for number in range(OPERATIONS):
        record["start"], record["source"] = 1000 * number, number * 0x123456789
        assert pack_one(ctypes.byref(packer), 0, place)
    (path,) = tmp_path.glob("recording-*.ffm")
    recording = read_recording(path)
    whole = OPERATIONS * 8  # at least: the source's differences
    if kept_s == 1e-9:
        assert path.stat().st_size < whole / 2
        assert recording.dropped + len(recording.operations) == OPERATIONS
        assert recording.operations["number"].tolist() == [OPERATIONS - 1]
        assert recording.operations["start"].tolist() == [1000 * (OPERATIONS - 1)]
    else:
        assert path.stat().st_size > whole
        assert recording.dropped == 0
        assert (recording.operations["number"] == np.arange(OPERATIONS)).all()
    native.ffm_packer_release(ctypes.byref(packer))
