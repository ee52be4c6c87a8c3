"""The Python frames of a sample, which may have interrupted the interpreter anywhere."""

from __future__ import annotations

import ctypes
import mmap
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from ffm.driver.catalogue import load_catalogue
from ffm.driver.generate import include_text
from tests.conftest import cuda_include
from tests.native.layers import includes_of, sources_of
from tests.native.loading import LOADED_OFTEN, loaded_anew

VERSION = 0x030B07F0
"""Python 3.11.7, whose innermost frame is found through a structure on the stack."""
CFRAME, CURRENT_FRAME, CODE, PREVIOUS, TYPE, TYPE_NAME, FIRST_LINE = 56, 8, 32, 48, 8, 24, 72
STRING_STATE = 32
PARTS = (112, 128, 136)
"""Offsets of its structures' members. The parts of code are its file, its name and its table of lines (CPython:
Include/cpython/pystate.h, Include/cpython/code.h, Include/internal/pycore_frame.h)."""
MOST = 16
WORDS = 3


class Python(ctypes.Structure):
    """`ffm_python`."""

    _fields_ = [
        ("thread_state", ctypes.c_void_p),
        ("runtime", ctypes.c_void_p),
        ("version", ctypes.c_uint32),
        ("dedicated", ctypes.c_bool),
    ]


@pytest.fixture(scope="module")
def library(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("frames")
    (folder / "catalogue.inc").write_text(include_text(load_catalogue()))
    path = folder / "libframes.so"
    subprocess.run(
        [
            "gcc", "-std=c11", "-D_GNU_SOURCE", "-O2", "-g", "-Wall", "-Wextra", "-Werror", "-fPIC", "-shared",
            LOADED_OFTEN, f"-I{folder}", *includes_of("stacks"), "-isystem", str(cuda_include()), "-o", str(path),
            *map(str, sources_of("stacks")), "-lunwind", "-lpthread",
        ],
        check=True,
    )  # fmt: skip
    return path


def opened(library: Path, state: Callable[[], int] | ctypes.c_void_p, version: int, runtime: int) -> ctypes.CDLL:
    """Load the library with state of its own, and tell it of an interpreter."""
    native = loaded_anew(library)
    function = ctypes.cast(state, ctypes.c_void_p).value  # type: ignore[arg-type]
    native.ffm_python_found(ctypes.byref(Python(function, runtime, version, False)))
    assert ctypes.c_bool.in_dll(native, "ffm_python_readable").value
    return native


def interrupted(native: ctypes.CDLL, most: int = MOST) -> list[int]:
    words = (ctypes.c_uint64 * (MOST * WORDS))()
    return words[: native.ffm_python_walk_interrupted(words, most)]


def in_call(native: ctypes.CDLL) -> list[int]:
    words, truncated = (ctypes.c_uint64 * (128 * WORDS))(), ctypes.c_bool()
    return words[: native.ffm_python_walk(words, ctypes.byref(truncated))]


def test_whole_frames_are_those_of_a_call(library: Path) -> None:
    runtime = ctypes.addressof(ctypes.c_char.in_dll(ctypes.pythonapi, "_PyRuntime"))
    state = ctypes.cast(ctypes.pythonapi.PyGILState_GetThisThreadState, ctypes.c_void_p)
    native = opened(library, state, sys.hexversion, runtime)
    assert interrupted(native) == []  # what code is, only a call can find out
    whole, sampled = in_call(native), interrupted(native)
    # The two innermost frames, those of this file, are at other places.
    assert sampled[2 * WORDS :] == whole[2 * WORDS : MOST * WORDS]
    assert interrupted(native, 3)[2 * WORDS :] == whole[2 * WORDS : 3 * WORDS]


class Fake:
    """A frame of Python 3.11 with its code, in words."""

    def __init__(self) -> None:
        self.state, self.cframe, self.frame, self.code, self.type, self.text = (
            (ctypes.c_uint64 * 64)() for _ in range(6)
        )
        self.type_name = ctypes.create_string_buffer(b"code")
        self.state[CFRAME // 8] = ctypes.addressof(self.cframe)
        self.cframe[CURRENT_FRAME // 8] = ctypes.addressof(self.frame)
        self.frame[CODE // 8] = ctypes.addressof(self.code)
        self.code[TYPE // 8] = ctypes.addressof(self.type)
        self.type[TYPE_NAME // 8] = ctypes.addressof(self.type_name)
        for part in PARTS:
            self.code[part // 8] = ctypes.addressof(self.text)
        self.code[FIRST_LINE // 8] = 1
        self.thread_state = ctypes.CFUNCTYPE(ctypes.c_void_p)(lambda: ctypes.addressof(self.state))


@pytest.mark.parametrize("place", ["nowhere", "no access", "a page's last bytes"])
def test_garbage_in_place_of_a_frame_or_its_code_ends_the_frames(library: Path, place: str) -> None:
    pages = mmap.mmap(-1, 2 * mmap.PAGESIZE)
    end = ctypes.addressof(ctypes.c_char.from_buffer(pages)) + mmap.PAGESIZE
    ctypes.CDLL(None).mprotect(ctypes.c_void_p(end), mmap.PAGESIZE, 0)
    garbage = {"nowhere": 3, "no access": end + 64, "a page's last bytes": end - 8}[place]
    fake = Fake()
    native = opened(library, fake.thread_state, VERSION, end)
    whole = in_call(native)
    assert len(whole) == WORDS
    assert interrupted(native) == whole
    for words, offset in [
        *((fake.code, part) for part in PARTS),
        (fake.code, TYPE),
        (fake.frame, CODE),
        (fake.cframe, CURRENT_FRAME),
    ]:
        right, words[offset // 8] = words[offset // 8], garbage
        assert interrupted(native) == [], offset
        words[offset // 8] = right
    fake.frame[PREVIOUS // 8] = garbage
    assert interrupted(native) == whole
    fake.text[STRING_STATE // 8] = 0x20 | 7 << 2  # characters of seven bytes
    assert interrupted(native) == []


def test_frames_in_a_circle_end(library: Path) -> None:
    fake = Fake()
    fake.frame[PREVIOUS // 8] = ctypes.addressof(fake.frame)
    native = opened(library, fake.thread_state, VERSION, 0)
    fake.frame[CODE // 8] = 0
    assert interrupted(native) == []
