"""A few bad programs of different kinds; `make faults` tries all that `bad_programs.py` lists."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.faults.bad_programs import KINDS, Bad, Ground
from tests.faults.server import Server

FEW = (
    "by_signal between 31",
    "by_signal between 37",
    "exec_self before",
    "close_range_raw before",
    "small_files before",
    "nobody_forks between",
    "kills_allocation before",
    "own_trap between",
    "breakpoint between",
    "traced_by_child between",
    "missing_interpreter",
)
STAGES = 3
"""The last two run the same code on what these three recorded."""

ALL = {str(bad): bad for bad in (bad for kind in KINDS.values() for bad in kind)}


@pytest.fixture(scope="module")
def ground(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Ground]:
    scratch = tmp_path_factory.mktemp("bad")
    with Server(scratch) as server:
        yield Ground(scratch, server)


@pytest.mark.parametrize("bad", [ALL[name] for name in FEW], ids=str)
def test_it_ends_as_without_ffm_or_says_why_it_cannot_be_measured(ground: Ground, bad: Bad) -> None:
    assert not list(ground.tried(bad, STAGES))


def test_every_bad_program_has_a_name_of_its_own() -> None:
    assert len(ALL) == sum(len(kind) for kind in KINDS.values())
