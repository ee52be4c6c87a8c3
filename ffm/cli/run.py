"""`ffm run`: the five stages by the packaged workflow, with one display, then the first screen of the report."""

from __future__ import annotations

import os
import shlex
from datetime import datetime
from pathlib import Path
from typing import Any

import click

from ffm.cli.options import (
    PROGRAM_LAST,
    detach_option,
    for_option,
    last_option,
    limit_options,
    memory_option,
    open_chosen,
    portion_options,
    require_time,
    results_target_option,
    scheduler_option,
)
from ffm.cli.standard_input import chosen_input, input_option
from ffm.errors import FfmError, UnreadableError
from ffm.plain_text import plain

LIMITED_SUFFIX = "-sites"
"""Of the folder for a measurement that is limited to some sites."""

KEPT = "What the completed stages found is kept: the same command goes on from there"


@click.command(context_settings=PROGRAM_LAST)
@click.option("--sample", metavar="NAME", help="Measure a bundled program; COMMAND then has only its arguments.")
@results_target_option("program")
@input_option
@limit_options
@portion_options
@for_option
@detach_option
@last_option
@scheduler_option
@memory_option
@click.option("--watch", type=click.Choice(["pages", "trace"]), help="How stage 3 observes accesses. [default: pages]")
@click.option(
    "--no-ordinary-memory", is_flag=True, help="Assume that no kernel accesses ordinary host memory by its address."
)
@click.option(
    "--configfile",
    "files",
    type=click.Path(dir_okay=False, path_type=Path),
    multiple=True,
    metavar="FILE",
    help="Read settings from this file; options given here take precedence. `ffm init` writes one to start from.",
)
@click.option("--force", is_flag=True, help="Measure everything again, even what is up to date.")
@click.option(
    "--quick",
    is_flag=True,
    help="Trace a single run instead, for the most that removing each wait or transfer could save. [results: "
    "results/<program>-quick]",
)
@click.option(
    "--sites",
    metavar="3,7|worst:5",
    help="Measure only these sites of the quick mode's results: by number, or the first N. All others are shown "
    "as not measured. [results: results/<program>-sites]",
)
@click.option(
    "--sites-of",
    type=click.Path(file_okay=False, path_type=Path),
    metavar="FOLDER",
    help="The quick mode's results that --sites means. [default: results/<program>-quick]",
)
@click.argument("command", nargs=-1, type=click.UNPROCESSED)
def run(
    sample: str | None,
    results: Path | None,
    stdin: Path | None,
    timeout: float | None,
    accept_status: int | None,
    window: str | None,
    ranges: str | None,
    iterations: str | None,
    for_s: float | None,
    detach: bool,
    last_s: float | None,
    scheduler: str | None,
    memory_mib: int | None,
    watch: str | None,
    no_ordinary_memory: bool,
    files: tuple[Path, ...],
    force: bool,
    quick: bool,
    sites: str | None,
    sites_of: Path | None,
    command: tuple[str, ...],
) -> None:
    """Measure a program with all five stages, and show what could be saved.

    COMMAND is the program with its arguments: ffm run ./app 1 2 3

    Stages whose results are up to date are not run again. Snakemake runs the stages with the workflow that is part of
    ffm. `ffm init` copies it into a folder of your own, for clusters and settings in files.
    """
    settings = _read(files)
    if sample is not None:
        settings.pop("app", None)
        settings["sample"] = sample
    if command:
        settings["app" if sample is None else "arguments"] = shlex.join(command)
    if not settings.get("app") and "sample" not in settings:
        raise FfmError("name the program to measure: `ffm run ./program ARGUMENTS`.")
    given = {"results": results, "timeout": timeout, "accept_status": accept_status, "watch": watch}
    given |= {"window": window, "ranges": ranges, "iterations": iterations}
    given |= {"for": None if for_s is None else f"{for_s:g}s", "scheduler": scheduler, "memory": memory_mib}
    settings |= {name: str(value) for name, value in given.items() if value is not None}
    if no_ordinary_memory:
        settings["ordinary_memory"] = "no"
    if sites_of is not None and sites is None:
        raise click.UsageError("--sites-of names the results for --sites: say which sites.")
    require_time(detach, for_s)
    watches = watch is not None or no_ordinary_memory
    _refuse_contradictions(quick, sites is not None, watches, scheduler is not None, detach, last_s is not None)
    if quick:
        from ffm.cli.quick import measure_quickly

        _show_report(measure_quickly(settings, stdin=stdin, leave=detach, last_s=last_s))
        return
    if sites is not None:
        settings |= _limited(settings, sites, sites_of)
    _show_report(measure(settings, force, stdin))


def _refuse_contradictions(quick: bool, sites: bool, watches: bool, scheduler: bool, detach: bool, last: bool) -> None:
    """Check which options are given together.

    Raises:
        click.UsageError: Some exclude each other.
    """
    if quick and sites:
        raise click.UsageError("--quick traces all sites: leave out --sites, or run it without --quick afterwards.")
    if quick and watches:
        raise click.UsageError("--quick watches no memory: leave out --watch and --no-ordinary-memory.")
    if quick and scheduler:
        raise click.UsageError("--quick has nothing to share: leave out --scheduler.")
    if detach and not quick:
        raise click.UsageError("--detach leaves the program running, but all stages start it four times: add --quick.")
    if last and not quick:
        raise click.UsageError("--last keeps the end of one run, which no other run can find again: add --quick.")


def _limited(settings: dict[str, Any], which: str, quick: Path | None) -> dict[str, Any]:
    """Write down which of the quick mode's sites to measure; return the settings for that.

    Raises:
        FfmError: There are no such sites.
    """
    from ffm.cli.quick import SUFFIX
    from ffm.results.chosen_sites import CHOICE_FILE, choose, write_choice
    from ffm.results.folder.paths import ResultsFolder
    from ffm.workflow.settings import read_settings

    checked = read_settings(settings)
    source = quick or Path(checked.results + SUFFIX)
    if not (source / "analysis.json").is_file():
        raise FfmError(
            f"there are no results of quick mode in {source}: trace the program first, by `ffm run --quick`."
        )
    analysis = open_chosen(source).document
    if analysis.origin not in ("ffm", "quick"):
        raise FfmError(
            f"{source} was imported from {analysis.origin}, and a measurement cannot find its call stacks again: "
            "trace the program by `ffm run --quick`, and leave out --sites-of."
        )
    if analysis.origin != "quick":
        raise FfmError(
            f"{source} does not hold results of quick mode: name a folder of `ffm run --quick` with --sites-of."
        )
    folder = ResultsFolder(Path(checked.results if "results" in settings else checked.results + LIMITED_SUFFIX))
    chosen = choose(analysis, which)
    folder.make()
    write_choice(chosen, folder.root / CHOICE_FILE)
    return {"results": str(folder.root), "sites": str(folder.root / CHOICE_FILE)}


def _read(files: tuple[Path, ...]) -> dict[str, Any]:
    """Read the settings in some files; later files take precedence."""
    import yaml

    settings: dict[str, Any] = {}
    for file in files:
        try:
            read = yaml.safe_load(file.read_text())
        except OSError as error:
            raise UnreadableError(f"the file of settings {file}", error) from error
        except (yaml.YAMLError, UnicodeDecodeError) as error:
            raise FfmError(
                f"the file of settings {file} is not YAML: {' '.join(str(error).split())}. Correct it."
            ) from error
        if not isinstance(read, dict):
            raise FfmError(f"the file of settings {file} contains no settings: write some, such as `app: ./program`.")
        settings |= read
    return settings


def measure(settings: dict[str, Any], force: bool, stdin: Path | None = None) -> Path:
    """Run the workflow with a display on standard error; return the folder with the results.

    `stdin` is what `--stdin` names, which takes precedence over a setting.

    Raises:
        FfmError: The settings are wrong, or a stage failed; the message is the stage's own sentence.
        KeyboardInterrupt: ffm was asked to end; a note says what is kept.
    """
    from ffm.cli.running.run_screen import RunScreen, shown
    from ffm.cli.running.workflow import run_workflow
    from ffm.instrument.session.open_files import require_open_files
    from ffm.instrument.session.program import resolve_program
    from ffm.results.folder.paths import ResultsFolder
    from ffm.results.stored import command_measured_in
    from ffm.workflow.settings import read_settings

    checked = read_settings(settings)
    words, folder = checked.command, ResultsFolder(Path(checked.results))
    resolve_program(words)
    require_open_files(os.getpid())
    if not os.access(Path.cwd(), os.W_OK):
        raise FfmError(
            f"the current folder {Path.cwd()} cannot be written, and Snakemake keeps its records there; change to "
            "another one, and name the program by its path."
        )
    read = chosen_input(stdin or (Path(checked.stdin) if checked.stdin else None), folder)
    if read is not None:
        settings = settings | {"stdin": str(read)}
        read_settings(settings)
    folder.make()
    if (before := command_measured_in(folder.root)) not in ([], words):
        click.echo(
            f"When this measurement is complete, it replaces that of `{plain(shlex.join(before))}` in {folder.root}. "
            "To keep both, choose another folder with --results.",
            err=True,
        )
    screen = RunScreen(f"measuring {shlex.join([Path(words[0]).name, *words[1:]])}", _last_walls(folder.root, words))
    again = " without --force" if force else ""
    with shown(screen) as take:
        try:
            run_workflow(settings, force=force, tell=take)
        except KeyboardInterrupt as interruption:
            if screen.completed_any:
                interruption.add_note(f"{KEPT}{again and ','}{again}.")
            raise
        except FfmError as error:
            if not screen.completed_any:
                raise
            raise FfmError(
                f"{error} What the completed stages found is kept: run the same command{again} to go on from there, "
                "unless the program changes."
            ) from error
    if screen.ran_nothing:
        when = datetime.fromtimestamp(folder.document("analysis").stat().st_mtime).strftime("%Y-%m-%d %H:%M")
        click.echo(f"Nothing has changed since {words[0]} was measured ({when}); --force measures it again.", err=True)
    return folder.root


def _last_walls(folder: Path, words: list[str]) -> dict[str, float]:
    """Return how long the program ran in each stage when it was last measured with these arguments."""
    import orjson

    from ffm.cli.running.run_screen import USUAL_RATIOS

    walls: dict[str, float] = {}
    for stage in USUAL_RATIOS:
        try:
            run = orjson.loads((folder / f"{stage}.json").read_bytes())["run"]
            if run["command"] == words:
                walls[stage] = float(run["wall_s"])
        except (OSError, ValueError, KeyError, TypeError):
            continue  # only a guess about what is to come
    return walls


def _show_report(folder: Path) -> None:
    from ffm.cli.options import RESULTS, newest_results, results_words
    from ffm.report.numbers import chosen_estimator
    from ffm.report.overview import overview
    from ffm.report.terminal.overview import render_first_screen
    from ffm.report.terminal.printing import print_screen
    from ffm.results.stored import open_results

    shown_anyway = folder.parent == RESULTS and newest_results(RESULTS) == folder
    words = results_words(None if shown_anyway else folder)
    analysis = open_results(folder).document
    click.echo()
    print_screen(render_first_screen, overview(analysis, chosen_estimator(analysis, None), results=words))
