"""Whether the stages of a measurement ran the same program."""

from __future__ import annotations

import msgspec

from ffm.results.documents.run import ExitStatus, Run
from ffm.stages.analysis.stage import measured_command

RUN = Run(
    stage="tracing",
    command=["./app", "1"],
    working_directory="/home/me/solver",
    started="",
    wall_s=1.0,
    preparation_s=0.0,
    user_s=0.0,
    system_s=0.0,
    status=ExitStatus(code=0, signal=None, timed_out=False),
    processes=[],
    hooks=[],
    driver=None,
)


def command(folder: str, *words: str) -> list[str]:
    return measured_command(msgspec.structs.replace(RUN, working_directory=folder, command=[*words]))


def test_a_program_has_one_name_however_it_is_called() -> None:
    assert command("/home/me/solver", "./app", "1") == command("/home/me", "solver/app", "1")
    assert command("/home/me/solver", "./app", "1") == command("/tmp", "/home/me/solver/app", "1")


def test_other_programs_and_arguments_are_told_apart() -> None:
    assert command("/home/me", "./app", "1") != command("/home/you", "./app", "1")
    assert command("/home/me", "./app", "1") != command("/home/me", "./app", "2")
