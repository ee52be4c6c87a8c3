"""Hashes depend neither on the instructions that a CPU has, nor on how bytes are divided into rows."""

from __future__ import annotations

import ctypes
import subprocess
from pathlib import Path

import numpy as np
import pytest
import xxhash

from ffm.driver.catalogue import load_catalogue
from ffm.driver.generate import include_text
from tests.conftest import cuda_include
from tests.native.layers import NATIVE, includes_of

PART = 64 << 10
"""FFM_PART_BYTES."""


class Box(ctypes.Structure):
    """`ffm_box` of boxes.h."""

    _fields_ = (
        ("address", ctypes.c_uint64),
        ("width", ctypes.c_uint64),
        ("pitch", ctypes.c_uint64),
        ("height", ctypes.c_uint64),
        ("slice", ctypes.c_uint64),
        ("depth", ctypes.c_uint64),
        ("host", ctypes.c_bool),
    )


class Hash(ctypes.Structure):
    """`ffm_hash` of hashes.h."""

    _fields_ = (("low", ctypes.c_uint64), ("high", ctypes.c_uint64))

    @property
    def value(self) -> int:
        return int(self.high) << 64 | int(self.low)


@pytest.fixture(scope="module")
def hashing(tmp_path_factory: pytest.TempPathFactory) -> ctypes.CDLL:
    folder = tmp_path_factory.mktemp("hashes")
    (folder / "catalogue.inc").write_text(include_text(load_catalogue()))
    library = folder / "libhashes.so"
    sources = [str(NATIVE / "hashing" / name) for name in ("hashes.c", "hashes_avx2.c")]
    sources.append(str(Path(__file__).with_name("vector_state.c")))
    includes = [f"-I{folder}", *includes_of("hashing"), "-isystem", str(cuda_include())]
    subprocess.run(
        ["gcc", "-std=c11", "-D_GNU_SOURCE", "-O2", "-fPIC", "-shared", *includes, "-o", str(library), *sources],
        check=True,
    )
    loaded = ctypes.CDLL(str(library))
    for name in ("ffm_hash_box", "ffm_hash_box_sse2", "ffm_hash_box_avx2"):
        function = getattr(loaded, name)
        function.argtypes, function.restype = (ctypes.POINTER(Box), ctypes.c_void_p, ctypes.c_void_p), Hash
    return loaded


def hash_of(function: object, bytes_: np.ndarray, width: int, pitch: int, height: int) -> int:
    box = Box(bytes_.ctypes.data, width, pitch, height, pitch * height, 1, True)
    return int(function(ctypes.byref(box), None, None).value)  # type: ignore[operator]


@pytest.mark.parametrize("count", [1, 17, 240, 241, 4096, PART - 1, PART])
def test_up_to_a_part_is_plain_xxh3(hashing: ctypes.CDLL, count: int) -> None:
    data = np.random.default_rng(count).integers(0, 256, count, np.uint8)
    assert hash_of(hashing.ffm_hash_box, data, count, count, 1) == xxhash.xxh3_128_intdigest(data.tobytes())


@pytest.mark.parametrize("count", [300, PART, 5 * PART + 123])
def test_the_program_finds_vector_registers_as_it_wants_them(hashing: ctypes.CDLL, count: int) -> None:
    if not {"avx2", "xgetbv1"} <= set(Path("/proc/cpuinfo").read_text().split()):
        pytest.skip("this CPU has no AVX2, or does not tell which registers are in use")
    data = np.zeros(count, np.uint8)
    box = Box(data.ctypes.data, count, count, 1, count, 1, True)
    assert hashing.upper_halves_in_use_after(ctypes.byref(box)) == 0


@pytest.mark.parametrize("count", [1, 300, PART, PART + 1, 5 * PART + 123])
def test_all_instructions_give_the_same(hashing: ctypes.CDLL, count: int) -> None:
    if "avx2" not in Path("/proc/cpuinfo").read_text():
        pytest.skip("this CPU has no AVX2")
    data = np.random.default_rng(count).integers(0, 256, count, np.uint8)
    plain = hash_of(hashing.ffm_hash_box_sse2, data, count, count, 1)
    assert hash_of(hashing.ffm_hash_box_avx2, data, count, count, 1) == plain


def test_rows_hash_as_if_they_had_no_gaps(hashing: ctypes.CDLL) -> None:
    data = np.random.default_rng(0).integers(0, 256, (50, 4096), np.uint8)
    rows = np.ascontiguousarray(data[:, :3000])
    with_gaps = hash_of(hashing.ffm_hash_box, data, 3000, 4096, 50)
    assert with_gaps == hash_of(hashing.ffm_hash_box, rows, rows.size, rows.size, 1)
