"""`ffm stage NAME`: one stage of the measurement, called by the workflow or by hand."""

from __future__ import annotations

import shlex
import sys
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from ffm.cli.options import (
    PROGRAM_LAST,
    RESULTS,
    detach_option,
    for_option,
    last_option,
    limit_options,
    memory_option,
    portion_options,
    require_all,
    require_time,
    results_target_option,
    scheduler_option,
)
from ffm.cli.standard_input import chosen_input, input_option
from ffm.errors import FfmError

if TYPE_CHECKING:
    from ffm.instrument.session.portion import Asked
    from ffm.stages.measure import Watch
    from ffm.steps import CompilingSteps


NOTICEABLE_S = 1.0
"""Compiling for less time than this needs no explanation."""


class InOrder(click.Group):
    """Lists its commands in the order in which they are defined, each with its full summary."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        """Return the command names in the order of definition."""
        return list(self.commands)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """List the commands with their first sentences."""
        with formatter.section("Commands"):
            formatter.write_dl([(name, command.get_short_help_str(200)) for name, command in self.commands.items()])


@click.group(cls=InOrder)
def stage() -> None:
    """Run one stage of the measurement. Each stage needs the ones listed before it."""
    from ffm.workflow.origins import end_with_origins

    end_with_origins()


def _measuring(function: Callable[..., None]) -> Callable[..., None]:
    """Add the options and arguments of the stages that run the program, which are keywords of `_run`."""
    function = click.argument("command", nargs=-1, required=True, type=click.UNPROCESSED)(function)
    return results_target_option("program")(for_option(input_option(limit_options(function))))


def _run(
    name: str,
    *,
    results: Path | None,
    command: tuple[str, ...],
    timeout: float | None,
    accept_status: int | None,
    stdin: Path | None,
    for_s: float | None,
    watch: Watch = "pages",
    ordinary_memory: bool = True,
    sites: Path | None = None,
    portion: Asked | None = None,
    leave: bool = False,
    last_s: float | None = None,
) -> None:
    """Run a measuring stage, show its progress on the terminal, and summarize in one line what it found."""
    from ffm.cli.interruption import raise_what_was_lost
    from ffm.cli.running.progress import running
    from ffm.results.chosen_sites import read_choice
    from ffm.results.folder.paths import ResultsFolder, application_name
    from ffm.stages.measure import Request
    from ffm.stages.registry import run_stage

    words = list(command)
    folder = ResultsFolder(results or RESULTS / application_name(words))
    request = Request(
        words,
        folder,
        timeout,
        watch,
        ordinary_memory,
        accept_status or 0,
        None if sites is None else read_choice(sites).stacks,
        portion,
        for_s,
        leave,
        last_s=last_s,
        stdin=chosen_input(stdin, folder),
    )
    with running(name, " ".join(words)) as line:
        try:
            document = run_stage(name, request)
        except KeyboardInterrupt as interruption:
            interruption.add_note(
                f"{words[0]} and all that it started were stopped in the {name} run; what was recorded until then is "
                f"in {folder.recordings(name)}."
            )
            raise
        if document.run is not None and document.run.status.cut == "interruption":
            what = "was left running" if leave else "and all that it started were stopped"
            endless = " If the program never ends by itself, measure it for a time: --for 60s." if for_s is None else ""
            raise_what_was_lost(
                f"{words[0]} {what} in the {name} run. What was recorded in its "
                f"{document.run.wall_s:.2f} s is kept in {folder.recordings(name)} and {folder.document(name)}, and "
                f"the stages after this one can use it.{endless}"
            )
        line.done(document, folder.root)


@stage.command(context_settings=PROGRAM_LAST)
@_measuring
def baseline(**measuring: Any) -> None:
    """1: time the bare program, and find which driver functions wait.

    COMMAND is the program with its arguments: ffm stage baseline ./app 1 2 3
    """
    _run("baseline", **measuring)


@stage.command(context_settings=PROGRAM_LAST)
@_measuring
@portion_options
@detach_option
@last_option
def tracing(
    window: str | None,
    ranges: str | None,
    iterations: str | None,
    detach: bool,
    last_s: float | None,
    **measuring: Any,
) -> None:
    """2: trace every operation with its stack and times.

    With --window, --ranges or --iterations, only a portion of the run. The stages after this one measure the same.
    """
    from ffm.instrument.session.portion import read_portion

    require_time(detach, measuring["for_s"])
    portion = read_portion(window, ranges, iterations)
    require_all(last_s, portion)
    _run("tracing", portion=portion, leave=detach, last_s=last_s, **measuring)


@stage.command(context_settings=PROGRAM_LAST)
@_measuring
@click.option(
    "--watch",
    type=click.Choice(["pages", "trace"]),
    default="pages",
    show_default=True,
    help="How to observe accesses: by protecting pages or, slowly, by following every load and store.",
)
@click.option(
    "--no-ordinary-memory",
    is_flag=True,
    help="Assume that no kernel accesses ordinary host memory by its address, though the GPU could. Otherwise every "
    "kernel parameter that could be such an address counts as one, and ends the watch on that memory.",
)
@click.option(
    "--sites",
    type=click.Path(dir_okay=False, path_type=Path),
    metavar="FILE",
    help="Measure only the sites in a file that `ffm run --sites` wrote.",
)
def memory(watch: Watch, no_ordinary_memory: bool, sites: Path | None, **measuring: Any) -> None:
    """3: find who uses what each synchronization protects; hash what transfers carry."""
    _run("memory", watch=watch, ordinary_memory=not no_ordinary_memory, sites=sites, **measuring)


@stage.command(name="sync-use", context_settings=PROGRAM_LAST)
@_measuring
def sync_use(**measuring: Any) -> None:
    """4: measure the time from each needed synchronization to the first use of what it protects."""
    _run("sync-use", **measuring)


@stage.command(context_settings=PROGRAM_LAST)
@results_target_option("program")
@scheduler_option
@memory_option
@click.argument("command", nargs=-1, type=click.UNPROCESSED)
def analysis(results: Path | None, scheduler: str | None, memory_mib: int | None, command: tuple[str, ...]) -> None:
    """5: join the runs, model what fixes would save, and write the results.

    Select the results by COMMAND, the measured program, or by --results.
    """
    from ffm.cli.running.progress import running
    from ffm.report.numbers import plural
    from ffm.results.folder.lock import writing_to
    from ffm.results.folder.paths import ResultsFolder, application_name
    from ffm.stages.analysis.stage import run_analysis
    from ffm.stages.analysis.workers import spread_over
    from ffm.steps import following_compiler

    if results is None and command:
        results = RESULTS / application_name(list(command))
    if results is None:
        raise click.UsageError("name the program (ffm stage analysis ./app) or its results (--results FOLDER)")
    if not results.is_dir():
        raise FfmError(
            f"The results folder {results} does not exist. Run `ffm stage baseline` first; `snakemake --config "
            "app=...` runs all stages in order."
        )
    with running("analysis", str(results)) as line, writing_to(results, "ffm stage analysis"):
        with spread_over(scheduler, results) as spread, following_compiler(line.tell) as tell:
            memory_bytes = None if memory_mib is None else memory_mib << 20
            found = run_analysis(ResultsFolder(results), spread.replays, memory_bytes, tell)
        # Without --results, the newest folder below ./results is shown, which is this one.
        chosen = "" if results.parent == RESULTS else f" --results {shlex.quote(str(results))}"
        places = sum(1 for site in found.sites if site.problem_count)
        counts = f"{plural(places, 'call site')} with problems, {plural(len(found.sequences), 'sequence')}"
        line.say(f"{counts}. View them: ffm report{chosen}")
        line.remark = _compiling(tell)
    if spread.failures:
        click.echo(
            f"Other processes failed at {len(spread.failures)} parts of the analysis, which were then done here; the "
            f"results are whole. The first failure was {spread.failures[0]}",
            err=True,
        )
    sys.stdout.flush()


def _compiling(steps: CompilingSteps) -> str:
    """Return why the analysis took so long, if compiling was the reason, as a sentence; mostly empty."""
    if steps.compiling_s < NOTICEABLE_S:
        return ""
    kept = "It is kept" if steps.kept else "It cannot be kept, because no folder for it can be written"
    then = "so later ones take less time" if steps.kept else "so each takes this time: set XDG_CACHE_HOME to one"
    return f"{steps.compiling_s:.0f} s of that went into compiling the code of the analysis. {kept}, {then}."
