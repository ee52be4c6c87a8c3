"""A few bad programs of different kinds; `make faults` tries all that `bad_programs.py` lists."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator

import pytest

from tests.faults.bad_programs import KINDS, Bad, Ground
from tests.server import Server

FEW = {
    "by_signal between 37": 1,
    "exec_self_without_environment before": 2,
    "close_range_raw before": 1,
    "small_files before": 2,
    "kills_allocation before": 1,
    "tiny_thread_stack between": 1,
    "traps_a_call before": 1,
    "own_trap between": 3,
    "traced_by_child between": 3,
    "missing_interpreter": 1,
}
"""How many stages each needs to show what it is for."""

ALL = {str(bad): bad for bad in (bad for kind in KINDS.values() for bad in kind)}


@pytest.fixture(scope="module")
def ground(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Ground]:
    scratch = tmp_path_factory.mktemp("bad")
    with Server(scratch) as server:
        yield Ground(scratch, server)


@pytest.mark.parametrize(("bad", "stages"), [(ALL[name], stages) for name, stages in FEW.items()], ids=str)
def test_it_ends_as_without_ffm_or_says_why_it_cannot_be_measured(ground: Ground, bad: Bad, stages: int) -> None:
    assert not list(ground.tried(bad, stages))


def test_the_program_can_do_all_that_is_tried(ground: Ground) -> None:
    names = subprocess.run([ground.program], check=True, capture_output=True, text=True).stdout.split()
    tried = {bad.thing for bad in ALL.values()} - {bad.thing for bad in KINDS["files"]}
    assert tried == set(names)


def test_every_bad_program_has_a_name_of_its_own() -> None:
    assert len(ALL) == sum(len(kind) for kind in KINDS.values())
