"""The samples' truth files agree with the current source."""

import re
import tomllib
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from ffm.vgpu import samples
from ffm.vgpu.samples.truth import UnreadableMarksError, as_toml, call_sites

SAMPLES = Path(samples.__file__).parent
SOURCES = SAMPLES / "als"
SPEAKING_CALL = re.compile(
    r"\bcheck\(((?:cudaMemcpy|cudaFree|cudaFreeHost|cudaDeviceSynchronize|cudaDeviceReset|vblasSasum|vblasDestroy))\("
)


@pytest.fixture(scope="module")
def sites() -> list[dict[str, Any]]:
    return tomllib.loads((SAMPLES / "als.truth.toml").read_text())["call_site"]


def test_file_is_what_the_marks_say():
    assert (SAMPLES / "als.truth.toml").read_text() == as_toml(call_sites(SOURCES)), (
        "stale: run `python -m ffm.vgpu.samples.truth`"
    )


def test_every_line_holds_the_call_it_names(sites):
    for site in sites:
        line = (SOURCES / site["file"]).read_text().splitlines()[site["line"] - 1]
        assert f"{site['call']}(" in line
        if site["call"] == "cudaFree":
            pointer = re.search(r"cudaFree\((\w+)\)", line)
            allocation = (SOURCES / site["file"]).read_text().splitlines()[site["allocated_at"] - 1]
            assert pointer and f"cudaMalloc((void **)&{pointer[1]}," in allocation


def test_every_call_that_waits_or_transfers_has_an_entry(sites):
    written = {
        (path.name, number, call[1])
        for path in SOURCES.glob("*.cu")
        for number, line in enumerate(path.read_text().splitlines(), 1)
        if (call := SPEAKING_CALL.search(line))
    }
    assert written == {(site["file"], site["line"], site["call"]) for site in sites}


def test_an_iteration_makes_the_calls_of_cumf_als(sites):
    """17 frees, 9 device synchronizations, 9 uploads and 2 results through the library, as in its published data."""
    source = (SOURCES / "als.cu").read_text().splitlines()
    loop = next(number for number, line in enumerate(source, 1) if "int iteration = 0; iteration <" in line)
    end = next(number for number, line in enumerate(source, 1) if number > loop and line == "    }")
    calls = Counter(
        site["call"]
        for site in sites
        for place in ([site["line"]] if site["file"] == "als.cu" else site["callers"])
        if loop < int(str(place).rpartition(":")[2]) < end and site["file"] != "main.cu"
    )
    assert calls == {"cudaFree": 17, "cudaDeviceSynchronize": 9, "cudaMemcpy": 9, "vblasSasum": 2}


@pytest.mark.parametrize(
    "text",
    [
        "void f() {\n    // problem: no such thing\n    cudaFree(x);\n}\n",
        "void f() {\n    // once: upload\n    return;\n}\n",
    ],
)
def test_a_mark_without_meaning_is_refused(tmp_path, text):
    (tmp_path / "a.cu").write_text(text)
    with pytest.raises(UnreadableMarksError, match=r"a\.cu:2"):
        call_sites(tmp_path)
