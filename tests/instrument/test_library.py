"""Compiled parts that do not match the rest of ffm are not used."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

import ffm
import ffm.instrument
from ffm.errors import InstrumentError
from ffm.instrument.library import COLLECTOR, LIBRARIES, native_library
from ffm.instrument.recording.layout import DECLARATIONS
from ffm.instrument.session import permissions

HEADER = "instrument/native/collector/collector.h"
OTHERS = (
    "collector/callbacks.h",
    "collector/modes.h",
    "watch/detection/trace_calls.h",
    *(f"record/{header.name}" for header in DECLARATIONS),
)
"""With which the collector must agree, too."""


@pytest.fixture
def copied(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with copies of the libraries, and of the files with which the collector must agree."""
    (tmp_path / "instrument" / "lib").mkdir(parents=True)
    for name in LIBRARIES:
        shutil.copy(native_library(name), tmp_path / "instrument" / "lib")
    for name in ("driver/catalogue.toml", HEADER, *(f"instrument/native/{name}" for name in OTHERS)):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(
            next(Path(folder) / name for folder in ffm.__path__ if (Path(folder) / name).exists()), tmp_path / name
        )
    monkeypatch.setattr(ffm, "__path__", [str(tmp_path)])
    monkeypatch.setattr(ffm.instrument, "__path__", [str(tmp_path / "instrument")])
    return tmp_path


def test_a_library_is_used_that_was_built_from_the_files_that_are_there(copied: Path) -> None:
    assert native_library(COLLECTOR) == copied / "instrument" / "lib" / COLLECTOR


def test_a_library_that_was_built_from_others_is_named_with_what_changed(copied: Path) -> None:
    header = copied / HEADER
    header.write_text(header.read_text() + "\n")
    with pytest.raises(InstrumentError, match=rf"{COLLECTOR} was built.*: {HEADER} changed.*make setup"):
        native_library(COLLECTOR)
    found = permissions.check_machine()[0]
    assert not found.good and "make setup" in found.says


def test_a_library_of_before_this_was_noted_is_not_used(copied: Path) -> None:
    library = copied / "instrument" / "lib" / COLLECTOR
    library.write_bytes(library.read_bytes().replace(b"ffm built from ", b"             , "))
    with pytest.raises(InstrumentError, match="make setup"):
        native_library(COLLECTOR)
