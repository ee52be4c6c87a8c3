"""The page about recordings describes the layout that the collector and the reader are built from."""

from __future__ import annotations

import re

from ffm.instrument.recording.layout import DECLARATIONS, constant, record_type
from tests.conftest import ROOT

PAGE = (ROOT / "docs" / "recording-format.md").read_text(encoding="utf-8")
LAYOUT = "\n".join(header.read_text(encoding="utf-8") for header in DECLARATIONS)


def test_the_page_names_the_version_and_the_sizes() -> None:
    assert f"| `version` | {constant('FFM_VERSION')};" in PAGE
    assert f"header     {constant('FFM_HEADER_BYTES')} bytes" in PAGE
    assert f"`ffm_operation`, {record_type('ffm_operation').itemsize} bytes" in PAGE


def test_the_page_lists_every_kind_of_chunk_with_a_structure_of_the_layout() -> None:
    kinds = {int(number) for number in re.findall(r"\bFFM_CHUNK_\w+ = (\d+)", LAYOUT)}
    rows = re.findall(r"^\| (\d+) [^|]+ \| `(ffm_\w+)`", PAGE, re.MULTILINE)
    assert {int(number) for number, _ in rows} == kinds
    assert len(rows) == len(kinds)
    assert all(re.search(rf"^}} {structure};", LAYOUT, re.MULTILINE) for _, structure in rows)


def test_the_page_explains_every_field_of_the_header() -> None:
    table = PAGE[PAGE.index("## The header") : PAGE.index("## The chunks")]
    explained = {
        name for row in re.findall(r"^\| (`[^|]+) \|", table, re.MULTILINE) for name in re.findall(r"`(\w+)`", row)
    }
    assert explained == set(record_type("ffm_header").names or ())
