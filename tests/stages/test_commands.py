"""Whether the stages of a measurement ran the same program."""

from __future__ import annotations

from ffm.stages.analysis.stage import command_with_path
from tests.measured_run import a_run


def command(folder: str, *words: str) -> list[str]:
    return command_with_path(a_run(working_directory=folder, command=[*words]))


def test_a_program_has_one_name_however_it_is_called() -> None:
    assert command("/home/me/solver", "./app", "1") == command("/home/me", "solver/app", "1")
    assert command("/home/me/solver", "./app", "1") == command("/tmp", "/home/me/solver/app", "1")


def test_other_programs_and_arguments_are_told_apart() -> None:
    assert command("/home/me", "./app", "1") != command("/home/you", "./app", "1")
    assert command("/home/me", "./app", "1") != command("/home/me", "./app", "2")
