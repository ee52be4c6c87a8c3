"""The libraries in the program refuse plans that are damaged, and take those that are not.

A plan is read before a folder is used. So with a folder that does not exist, -1 says that the plan is sound.
"""

from __future__ import annotations

import ctypes
import os
import struct
from collections.abc import Callable
from pathlib import Path

import pytest

from ffm.instrument import library
from ffm.instrument.modes import Mode
from ffm.remedy.layout import PLAN, SITE, constant
from ffm.remedy.plan_file import Planned, write_plan
from ffm.stages import plan_files
from ffm.stages.plan_files import write_unread, write_watch_plan

NO_FOLDER, NOT_SOUND = -1, -2

KEYS = [bytes([number]) * 16 for number in (1, 2, 3)]
COUNT = 12
"""Where the number of records is, after the magic and the version."""

Damage = Callable[[bytes], bytes]


def put(place: int, form: str, value: int) -> Damage:
    """Return what writes a number at a place, from the end if negative."""

    def change(content: bytes) -> bytes:
        start = place % len(content)
        return content[:start] + struct.pack(form, value) + content[start + struct.calcsize(form) :]

    return change


DAMAGES: dict[str, Damage] = {
    "empty": lambda content: b"",
    "within its header": lambda content: content[:11],
    "a byte short": lambda content: content[:-1],
    "a record short": lambda content: content[:-32],
    "longer": lambda content: content + bytes(32),
    "another kind": lambda content: b"FFMTRACE" + content[8:],
    "another version": put(8, "<I", 99),
    "no records": put(COUNT, "<I", 0),
    "one more": put(COUNT, "<I", 4),
    "a huge number": put(COUNT, "<I", 0xFFFFFFFF),
    "beyond 32 bits of bytes": put(COUNT, "<I", 3 + (1 << 28)),  # times 16 bytes, the same in 32 bits
    "without a header": lambda content: content[16:],
}
"""Of all kinds of plans."""


def site(place: int, field: int, value: int) -> Damage:
    """Return what changes a number of a site: 0 its function, 1 its actions, 2 its unit."""
    return put(PLAN.size + place * SITE.size + 16 + 4 * field, "<I", value)


DAMAGED_SITES: dict[str, Damage] = {
    "an unknown function": site(1, 0, 1 << 20),
    "unknown actions": site(2, 1, 1 << 31),
    "an unknown unit": site(0, 2, 3),
    "a huge unit": site(2, 2, 0xFFFFFFFF),
    "not sorted": lambda content: content[: PLAN.size] + content[-SITE.size :] + content[PLAN.size : -SITE.size],
    "a changed key": put(PLAN.size, "<B", 0xFF),
}


def watch_status(plan: Path) -> int:
    native = ctypes.CDLL(str(library.native_library(library.COLLECTOR)))
    return int(native.ffm_collector_open(b"/nowhere", Mode.WATCH | Mode.PLAN, os.fsencode(plan)))


def unread_status(plan: Path) -> int:
    native = ctypes.CDLL(str(library.native_library(library.COLLECTOR)))
    native.ffm_collector_unread.restype = ctypes.c_bool
    return NO_FOLDER if native.ffm_collector_unread(os.fsencode(plan)) else NOT_SOUND


def remedy_status(plan: Path) -> int:
    native = ctypes.CDLL(str(library.native_library("libffm_remedy.so")))
    return int(native.ffm_remedy_open(b"/nowhere", 0, os.fsencode(plan)))


@pytest.fixture
def watch_plan(tmp_path: Path) -> Path:
    write_watch_plan(KEYS, tmp_path / "watch")
    return tmp_path / "watch"


@pytest.fixture
def remedy_plan(tmp_path: Path) -> Path:
    skip = constant("FFM_REMEDY_SKIP")
    write_plan([Planned(number, key, 0, skip, (), number) for number, key in enumerate(KEYS)], tmp_path / "sites")
    return tmp_path / "sites"


@pytest.fixture
def unread_plan(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    kernels = [f".visible .entry _Z{name}(.param .u64 {name}_0) {{ ret; }}" for name in ("first", "second", "third")]
    monkeypatch.setattr(plan_files, "sources_of_file", lambda path: kernels)
    return write_unread(["program"], None, tmp_path)


def test_a_plan_is_taken_as_it_was_written(watch_plan: Path, remedy_plan: Path, unread_plan: Path) -> None:
    assert watch_status(watch_plan) == NO_FOLDER
    assert remedy_status(remedy_plan) == NO_FOLDER
    assert unread_status(unread_plan) == NO_FOLDER


def test_a_plan_may_name_nothing(tmp_path: Path) -> None:
    write_watch_plan([], tmp_path / "watch")
    assert watch_status(tmp_path / "watch") == NO_FOLDER
    assert unread_status(write_unread([], None, tmp_path)) == NO_FOLDER


@pytest.mark.parametrize("damage", DAMAGES.values(), ids=DAMAGES)
def test_a_damaged_plan_is_refused(watch_plan: Path, remedy_plan: Path, unread_plan: Path, damage: Damage) -> None:
    kinds = ((watch_plan, watch_status), (remedy_plan, remedy_status), (unread_plan, unread_status))
    for plan, status in kinds:
        plan.write_bytes(damage(plan.read_bytes()))
        assert status(plan) == NOT_SOUND


@pytest.mark.parametrize("damage", DAMAGED_SITES.values(), ids=DAMAGED_SITES)
def test_a_plan_with_impossible_sites_is_refused(remedy_plan: Path, damage: Damage) -> None:
    remedy_plan.write_bytes(damage(remedy_plan.read_bytes()))
    assert remedy_status(remedy_plan) == NOT_SOUND


def test_what_is_no_ordinary_file_is_refused_at_once(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "fifo")
    for path in (tmp_path / "fifo", tmp_path, tmp_path / "missing", Path("/dev/zero")):
        assert watch_status(path) == NOT_SOUND
        assert remedy_status(path) == NOT_SOUND
        assert unread_status(path) == NOT_SOUND
