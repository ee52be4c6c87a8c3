"""What is said about a program's output."""

from __future__ import annotations

from pathlib import Path

import pytest

from ffm.results.folder.output import LONGEST, where_output


@pytest.mark.parametrize(
    ("written", "shown"),
    [
        (b"one\nno device\n\n", "no device"),
        (b"10 %\r20 %\rno device", "no device"),
        (b"\x1b[31mred\x1b[0m\xff\n", r"\x1b[31mred\x1b[0m" + "\ufffd"),
        (b"-----\nno slots\n-----\n", "no slots"),
        (b"---\n", "---"),
        (b"x" * 100_000 + b"\n", "x" * LONGEST + "…"),
        (b"first\n" + b"\n" * 1_000_000 + b"last", "last"),
    ],
    ids=["lines", "progress", "escape sequences", "ruled", "only a rule", "one long line", "much output"],
)
def test_the_last_line_is_shown(tmp_path: Path, written: bytes, shown: str) -> None:
    (tmp_path / "out.log").write_bytes(written)
    assert where_output(tmp_path / "out.log") == f'Its output is in {tmp_path / "out.log"}, and ends with "{shown}".'


@pytest.mark.parametrize("written", [b"", b" \n\n"], ids=["nothing", "blank lines"])
def test_a_program_that_said_nothing(tmp_path: Path, written: bytes) -> None:
    (tmp_path / "out.log").write_bytes(written)
    assert where_output(tmp_path / "out.log") == f"It wrote nothing (its output would be in {tmp_path / 'out.log'})."


def test_output_that_cannot_be_read(tmp_path: Path) -> None:
    assert where_output(tmp_path / "none.log") == f"Its output is in {tmp_path / 'none.log'}."
