"""NVIDIA's own driver libraries, which load without a GPU. `fetch_real_drivers.sh` fetches them."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections import defaultdict
from dataclasses import replace
from functools import cache
from pathlib import Path

import pytest

import ffm
from ffm.driver.analysis import WAITING_CALLS, DriverAnalysis, analyse
from ffm.driver.catalogue import load_catalogue
from ffm.driver.library import read_library
from ffm.driver.vocabulary import DefaultStream
from ffm.instrument.probing.wait_search import find_wait_function
from tests.driver.real_drivers import fetched_only

CATALOGUE = load_catalogue()


pytestmark = fetched_only


@cache
def analysed(path: Path) -> DriverAnalysis:
    return analyse(read_library(path))


def loads(path: Path) -> bool:
    command = [sys.executable, "-c", "import ctypes, sys; ctypes.CDLL(sys.argv[1])", str(path)]
    return subprocess.run(command, capture_output=True).returncode == 0


def test_every_export_is_in_the_catalogue(driver: Path) -> None:
    exports = {name for name in analysed(driver).exports if re.match("cu[A-Z]", name)}
    unknown = {name for name in exports if name not in CATALOGUE and name not in CATALOGUE.left_out}
    assert unknown == set()


def test_unwind_tables_cover_the_exports(driver: Path) -> None:
    analysis = analysed(driver)
    assert analysis.from_unwind_tables
    assert len(analysis.starts) > 10_000
    for name, address in analysis.exports.items():
        assert analysis.function_start(address) == address, name


def test_every_export_has_code_of_its_own(driver: Path) -> None:
    analysis = analysed(driver)
    named = {name for part in analysis.implementations for name in part.names}
    assert named == analysis.exports.keys()
    assert all(len(part.names) == 1 for part in analysis.implementations)
    # Since 470, an export is a stub; its implementation is another range.
    ranges = sum("cuCtxSynchronize" in part.names for part in analysis.implementations)
    assert ranges == (1 if "418" in driver.name or "450" in driver.name else 2)


def test_waiting_calls_have_few_functions_in_common(driver: Path) -> None:
    analysis = analysed(driver)
    assert 0 < len(analysis.candidates) < len(analysis.starts) / 10
    assert set(analysis.candidates) <= set(analysis.starts)
    assert not {analysis.exports[name] for name in WAITING_CALLS} & set(analysis.candidates)


def test_guessed_functions_are_mostly_real_ones(driver: Path) -> None:
    library = read_library(driver)
    guessed = analyse(replace(library, unwind_index=0))
    assert not guessed.from_unwind_tables
    real = set(analysed(driver).starts)
    exports = set(library.exports.values())
    assert exports <= set(guessed.starts)
    assert len(set(guessed.starts) & real) > len(real) / 2


def test_entry_points_are_exports_of_the_version_and_flavour_asked_for(driver: Path) -> None:
    if not loads(driver):
        pytest.skip("this build needs another library of its package")
    exports = analysed(driver).exports
    if "cuGetProcAddress" not in exports:
        pytest.skip("this build is older than cuGetProcAddress")
    names = defaultdict(set)
    for name, address in exports.items():
        names[address - exports["cuInit"]].add(name)
    root = Path(ffm.__file__).parents[1]
    command = [sys.executable, str(Path(__file__).with_name("entry_points.py")), str(driver)]
    environment = {**os.environ, "PYTHONPATH": str(root)}
    output = subprocess.run(command, check=True, capture_output=True, text=True, env=environment).stdout
    lines = output.splitlines()
    assert len(lines) > 1000
    for line in lines:
        asked, version, flags, distance = line.split()
        (name,) = names[int(distance)]
        function = CATALOGUE[name]
        assert function.base == asked, line
        flavoured = any(
            other.base == asked and other.default_stream is DefaultStream.PER_THREAD and other.name in exports
            for other in CATALOGUE.functions
        )
        # The first versions of some functions never had a per-thread variant.
        if flags != "2":
            assert function.default_stream is DefaultStream.LEGACY, line
        elif flavoured and int(version) >= 7000:
            assert function.default_stream is DefaultStream.PER_THREAD, line


def test_without_a_device_the_probe_says_so(driver: Path) -> None:
    # The library itself creates /dev/nvidiactl if it may, so that node proves nothing.
    if Path("/proc/driver/nvidia/version").exists():
        pytest.skip("this machine has a GPU")
    found = find_wait_function(driver)
    assert found.offset is None
    if loads(driver):
        assert "cuInit returned the error 100" in found.reason
    else:
        assert "cannot be loaded" in found.reason
