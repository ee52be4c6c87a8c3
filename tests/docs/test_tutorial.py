"""Whoever types the tutorial's commands, in order, sees what it shows.

Compared is everything but times and shares of time, and what the machine's load decides. A line `...` of the page
stands for any lines. Lines between two of those follow one another; rows among them may change places, since lists are
sorted by time.
"""

from __future__ import annotations

import os
import re
import sys
import textwrap
from collections import Counter
from dataclasses import dataclass
from pathlib import Path

import pytest

from ffm.report.terminal.outcome import NO_SAVING
from tests.conftest import ROOT
from tests.processes import run_to_end

PAGE = ROOT / "docs" / "tutorial.md"
SECONDS = 300.0
"""For one command, also on a busy machine."""


DOUBT = re.compile(r"^  This cannot be told from 0: .*\n(?: {4}\S.*\n)*", re.MULTILINE)
"""What `ffm apply-remedy` adds where runs differ so much that they hide a saving."""


@dataclass(frozen=True)
class Step:
    """A command of the page, and the lines that it shows below."""

    command: str
    shown: list[str]


def steps() -> list[Step]:
    blocks = re.findall(r"^```console\n\$ (.+)\n((?:.*\n)*?)```$", PAGE.read_text(encoding="utf-8"), re.MULTILINE)
    return [Step(command, shown.splitlines()) for command, shown in blocks]


def comparable(lines: list[str]) -> list[str]:
    """Lines without times, shares, the width of columns, and the number of a remedy, which its time decides."""
    without_times = (re.sub(r"-?\d+\.\d+", "#", line) for line in lines)
    return [re.sub(r"^\d+\. ", "#. ", " ".join(line.split())) for line in without_times]


def chunks(shown: list[str]) -> list[list[str]]:
    """The lines between those that say `...`."""
    found: list[list[str]] = [[]]
    for line in comparable(shown):
        if line == "...":
            found.append([])
        else:
            found[-1].append(line)
    return [chunk for chunk in found if chunk]


def place_of(chunk: list[str], printed: list[str], begin: int) -> int | None:
    """Where a chunk ends in what was printed, in whatever order its lines are; None where it is not there."""
    wanted = Counter(chunk)
    for end in range(begin + len(chunk), len(printed) + 1):
        if Counter(printed[end - len(chunk) : end]) == wanted:
            return end
    return None


def newcomer_folder(scratch: Path) -> Path:
    """A folder that looks like a fresh checkout after `make setup`."""
    for entry in ("Snakefile", "configs", "ffm", "profiles"):
        (scratch / entry).symlink_to(ROOT / entry)
    return scratch


def test_the_page_has_commands() -> None:
    assert len(steps()) > 5
    assert all(step.shown for step in steps())


@pytest.mark.thorough
def test_every_command_prints_what_the_page_shows(tmp_path: Path) -> None:
    folder = newcomer_folder(tmp_path)
    activated = {
        **os.environ,
        "COLUMNS": "80",
        "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}",
    }
    for step in steps():
        done = run_to_end(
            ["bash", "-c", f"exec 2>&1; {step.command}"], seconds=SECONDS, folder=folder, environment=activated
        )
        assert done.returncode == 0, done.stdout
        printed, begin = comparable(DOUBT.sub("", done.stdout).splitlines()), 0
        for chunk in chunks(step.shown):
            end = place_of(chunk, printed, begin)
            assert end is not None, f"$ {step.command}\nprinted\n{done.stdout}\nand not\n" + "\n".join(chunk)
            begin = end


def test_a_chunk_is_found_whatever_the_order_of_its_rows() -> None:
    assert place_of(["a", "b"], ["x", "b", "a", "y"], 0) == 3
    assert place_of(["a", "b"], ["a", "x", "b"], 0) is None
    assert place_of(["a"], ["a", "x"], 1) is None


def test_a_loaded_machine_shows_the_same() -> None:
    """Its runs differ by more than the corrections save."""
    quiet = "  saved           0.878 s\n  by hand         0.883 s\n"
    loaded = quiet.replace("\n", "\n" + "\n".join(textwrap.wrap(NO_SAVING, 80, subsequent_indent="    ")) + "\n", 1)
    assert loaded != quiet == DOUBT.sub("", loaded)
