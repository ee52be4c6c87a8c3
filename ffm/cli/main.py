"""The command `ffm`. Each family of commands is one file, which is imported only when it is used."""

from __future__ import annotations

import difflib
import errno
import importlib
import io
import os
import sys
from dataclasses import dataclass
from pathlib import Path

import click

from ffm import __version__
from ffm.cli.interruption import end_when_terminated, raise_what_was_lost, tell, unwind_when_terminated
from ffm.cli.system_errors import finish_output, sentence
from ffm.errors import FfmError
from ffm.plain_text import plain_lines


@dataclass(frozen=True, slots=True)
class Entry:
    """Where a command is defined, and its line in `ffm --help`."""

    module: str
    attribute: str
    summary: str


COMMANDS: dict[str, Entry] = {
    "run": Entry("ffm.cli.run", "run", "Measure a program with all five stages, and show what could be saved."),
    "demo": Entry("ffm.cli.demo", "demo", "Measure a bundled sample on the virtual GPU, and show the report."),
    "init": Entry("ffm.cli.init", "init", "Prepare a folder for Snakemake: Snakefile, profiles, settings."),
    "stage": Entry("ffm.cli.stage", "stage", "Run one stage of the measurement."),
    "report": Entry("ffm.cli.view", "report", "Show what could be saved: folds, sequences, single points."),
    "sequence": Entry("ffm.cli.view", "sequence", "Show one sequence with its operations numbered."),
    "subsequence": Entry("ffm.cli.view", "subsequence", "Estimate the saving of a part of a sequence."),
    "fold": Entry("ffm.cli.view", "fold", "Show all calls of one function, by calling function."),
    "site": Entry("ffm.cli.view", "site", "Show one call site: stack, times, verdicts."),
    "path": Entry("ffm.cli.path", "path", "Show what the run waits for, and what faster parts would save."),
    "doctor": Entry("ffm.cli.doctor", "doctor", "Check what this machine's driver, Frida and permissions allow."),
    "remedies": Entry("ffm.cli.remedies", "remedies", "Show what to change, where, and what it would save."),
    "apply-remedy": Entry("ffm.cli.apply_remedy", "apply_remedy", "Run the program with fixes applied, and compare."),
    "check": Entry("ffm.cli.check", "check", "Fail if a program has unneeded waits or transfers that are not allowed."),
    "compare": Entry("ffm.cli.compare", "compare", "Show what a change brought, next to what was estimated."),
    "export": Entry("ffm.cli.exporting", "export", "Write results as one file for other tools."),
    "completion": Entry("ffm.cli.completion", "completion", "Print code for shell completion."),
    "import": Entry("ffm.cli.importing", "import_results", "Import results of other tools."),
}
"""Every command, in the order in which `ffm --help` lists them."""


COMPLETION_VARIABLE = "_FFM_COMPLETE"
"""What a shell sets when it requests completions from ffm (click)."""


class CommandsOnDemand(click.Group):
    """A group that imports a command only when it is called, so that `ffm --help` imports none."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        """Return the command names in the order of use."""
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """Import a command by its name; return None if it does not exist."""
        entry = COMMANDS.get(cmd_name)
        if entry is None:
            return None
        command = getattr(importlib.import_module(entry.module), entry.attribute)
        if not isinstance(command, click.Command):
            raise TypeError(f"{entry.module}.{entry.attribute} is not a command")
        return command

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """Find the command that the arguments begin with. For an unknown one, the error says what may be meant."""
        try:
            return super().resolve_command(ctx, args)
        except click.UsageError as error:
            raise click.UsageError(error.message + _meant(args[0]), ctx) from error

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """List the commands with their summaries."""
        with formatter.section("Commands"):
            formatter.write_dl([(name, entry.summary) for name, entry in COMMANDS.items()])


def _meant(name: str) -> str:
    """Return what somebody may have meant by a word that is not a command; empty without a good guess."""
    near = difflib.get_close_matches(name, COMMANDS, n=1)
    if near:
        return f" Did you mean `ffm {near[0]}`?"
    program = Path(name)
    if program.is_file() and os.access(program, os.X_OK):
        return f" To measure a program: ffm run {name}"
    return f" To measure a script: ffm run python {name}" if program.is_file() and program.suffix == ".py" else ""


@click.group(cls=CommandsOnDemand, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(__version__, prog_name="ffm")
def commands() -> None:
    """Find the synchronizations and transfers that a CUDA program does not need.

    Measure a program with `ffm run ./program`, then look at the results with `ffm report`.
    """


def main() -> None:
    """Run the command line. An error that a user can act on becomes one sentence and a non-zero exit status.

    If the reader of a pipe leaves early (`ffm report | head`), click ends the command silently.
    """
    unwind_when_terminated()
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):  # names can have characters that the terminal's encoding lacks
            stream.reconfigure(errors="backslashreplace")
    try:
        status = _run()
    except (click.Abort, KeyboardInterrupt) as error:
        end_when_terminated()
        status = tell(error)
        for stream in (sys.stdout, sys.stderr):  # the terminal may have gone away
            finish_output(stream)
    finally:
        end_when_terminated()
    sys.exit(status)


def _run() -> int:
    """Run the command; return the exit status. Raises `click.Abort` or `KeyboardInterrupt` when told to end."""
    try:
        status = commands.main(prog_name="ffm", complete_var=COMPLETION_VARIABLE, standalone_mode=False)
        refused = finish_output()
        if refused is not None and refused.errno != errno.EPIPE:
            raise refused
        raise_what_was_lost()
    except FfmError as error:
        click.echo(f"ffm: {plain_lines(str(error))}", err=True)
        return error.exit_status
    except click.ClickException as error:
        error.show()
        return error.exit_code
    except OSError as error:
        click.echo(f"ffm: {plain_lines(sentence(error))}", err=True)
        return 1
    except MemoryError:
        click.echo("ffm: there is not enough memory for this. Use a machine that has more.", err=True)
        return 1
    return status if isinstance(status, int) else 0
