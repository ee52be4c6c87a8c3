"""The command and the input of a measurement, for running its program again: only what this user agrees to is run."""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING

import click

from ffm.errors import FfmError

if TYPE_CHECKING:
    from ffm.results.stored import Results


def input_of(results: Results, given: Path | None) -> Path | None:
    """Return what each run reads: what is named, or else what was read when the program was measured.

    Raises:
        FfmError: It cannot be read.
    """
    import tempfile

    from ffm.cli.standard_input import chosen_input, measured_input
    from ffm.results.folder.paths import ResultsFolder

    scratch = click.get_current_context().with_resource(tempfile.TemporaryDirectory(prefix="ffm-input-"))
    return chosen_input(given, ResultsFolder(Path(scratch))) or measured_input(results)


def measured_command(results: Results, *, agreed: bool) -> list[str]:
    """Return the command that the results name.

    It is run as it stands if this user measured it and it means the same in this folder. Otherwise the user is asked.

    Raises:
        FfmError: The user does not agree, or cannot be asked.
    """
    import sys

    from ffm.plain_text import plain
    from ffm.report.commands import stdin_of, typed

    if not results.command:
        raise FfmError("these results name no command: name it yourself, -- ./app ARGUMENTS.")
    reason = "is not signed as a measurement of yours"
    if results.own:
        if _means_the_same(results):
            return results.command
        reason = "was measured in another folder"
    if agreed:
        return results.command
    command = plain(typed(results.command, stdin_of(results.document.run)))
    unknown = f"{plain(str(results.folder))} {reason}, and would run the command:\n  {command}\n"
    if not sys.stdin.isatty():
        raise FfmError(f"{unknown}Agree with --yes, or name your own command: -- ./app ARGUMENTS.")
    if not _agreed(f"{unknown}Run it?"):
        raise FfmError("nothing was run.")
    return results.command


_ANYWHERE = re.compile(r"/.*|[-+]?\d+(\.\d+)?", re.DOTALL)
"""A word of a command that does not depend on the folder: an absolute path or a number."""


def _means_the_same(results: Results) -> bool:
    """Return whether the command runs the same program here as when it was measured.

    A signed document may have come back in a folder of somebody else's, where `./app` is another program.
    """
    from ffm.results.documents.run import working_directory

    run = results.document.run
    if run is not None and run.working_directory == working_directory():
        return True
    program, *arguments = results.command
    return program.startswith("/") and all(_ANYWHERE.fullmatch(word) for word in arguments)


def _agreed(question: str) -> bool:
    """Ask at the terminal; the end of the input is no agreement. Raises `click.Abort` at an interruption."""
    try:
        return click.confirm(question, err=True)
    except click.Abort as end:
        if isinstance(end.__context__, EOFError):
            click.echo(err=True)  # ends the line of the question
            return False
        raise
