"""Corrections under the sanitizers, without Frida: the program receives what it would uncorrected."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

from ffm.driver.catalogue import load_catalogue
from ffm.driver.generate import include_text
from ffm.remedy.layout import read_counters
from ffm.vgpu.paths import library_folder
from tests.conftest import cuda_include
from tests.native.layers import includes_of, sources_of

pytestmark = pytest.mark.sanitized

HERE = Path(__file__).parent
CLOSED_PAGES = "detect_leaks=0:allow_user_segv_handler=1:handle_segv=0"
"""The corrections must handle the faults of closed pages before the sanitizer reports them."""

DRIVER = "called_from_lib:libcuda.so\n"
"""For ThreadSanitizer, which cannot know how the driver, compiled without it, orders its own threads."""

REMOVED = ("synchronizations", "frees", "allocations", "uploads_copied", "downloads_staged", "deliveries_touched")


@pytest.mark.parametrize("sanitizers", ["address,undefined", "thread"])
def test_corrected_calls_give_what_uncorrected_ones_do(tmp_path: Path, sanitizers: str) -> None:
    (tmp_path / "catalogue.inc").write_text(include_text(load_catalogue()))
    (tmp_path / "suppressions").write_text(DRIVER)
    program, counters = tmp_path / "correction_test", tmp_path / "counters"
    counters.mkdir()
    sources = [source for source in sources_of("correction/calls") if source.name != "bypasses.c"]
    subprocess.run(
        [
            "gcc", "-std=gnu11", "-D_GNU_SOURCE", "-O1", "-g", "-Wall", "-Wextra", "-Werror", "-Wno-tsan",
            f"-fsanitize={sanitizers}", "-fno-sanitize-recover=all", "-fno-optimize-sibling-calls", f"-I{tmp_path}",
            *includes_of("correction/calls"), "-isystem", str(cuda_include()), "-o", str(program),
            str(HERE / "correction_test.c"), *map(str, sources), "-lunwind", "-lpthread", "-ldl",
        ],
        check=True,
    )  # fmt: skip
    suppressed = f"{CLOSED_PAGES}:suppressions={tmp_path / 'suppressions'}"
    run = subprocess.run(
        [str(program), str(library_folder() / "libcuda.so.1"), str(tmp_path / "plan"), str(counters)],
        env={**os.environ, "ASAN_OPTIONS": CLOSED_PAGES, "TSAN_OPTIONS": suppressed},
        capture_output=True,
        text=True,
        check=False,
    )
    assert run.returncode == 0, run.stderr
    (counted,) = (read_counters(file) for file in counters.iterdir())
    assert [name for name in REMOVED if counted.values[name] == 0] == []
