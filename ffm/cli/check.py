"""`ffm check`: the gate for continuous integration."""

from __future__ import annotations

import shlex
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

import click

from ffm.cli.options import PROGRAM_LAST, analysed_folder, checkout, chosen_folder, limit_options, view_command
from ffm.cli.printing import write_output
from ffm.cli.standard_input import input_option
from ffm.errors import FfmError

if TYPE_CHECKING:
    from ffm.gate.baseline import KnownSites
    from ffm.gate.iterations import IteratedRun
    from ffm.gate.judgement import Judgement
    from ffm.gate.rules import Rules
    from ffm.report.check import CheckView
    from ffm.results.stored import Results


class CouldNotCheckError(FfmError):
    """Nothing is known about whether the program passes."""

    exit_status: ClassVar[int] = 2


@click.command(cls=view_command("ffm.report.check:CheckView"), context_settings=PROGRAM_LAST)
@click.option(
    "--results",
    "folder",
    type=click.Path(file_okay=False, path_type=Path),
    metavar="FOLDER",
    help="Without COMMAND, the results to check. [default: the newest below ./results] With COMMAND, where they go.",
)
@click.option(
    "--config",
    type=click.Path(dir_okay=False, path_type=Path),
    metavar="FILE",
    help="What is allowed. [default: ./ffm.toml, else [tool.ffm] in ./pyproject.toml]",
)
@click.option("--update", is_flag=True, help="Store the present findings as the baseline: later, only new ones fail.")
@click.option(
    "--quick",
    is_flag=True,
    help="Trace COMMAND once and check its waits, none of which is proved unnecessary. [results: "
    "results/<program>-quick]",
)
@click.option(
    "--iterations",
    "how",
    metavar="auto|PLACE",
    help="Report waits per iteration. An iteration begins where the calls recur (auto), or at a function or FILE:LINE; "
    "PLACE@10 for every tenth. Or give the name of an NVTX range, or of `ffm.iteration` in a Python program.",
)
@click.option(
    "--format",
    "kind",
    type=click.Choice(["terminal", "json", "github", "sarif", "junit"]),
    default="terminal",
    show_default=True,
    help="`github`: annotations of GitHub Actions.",
)
@click.option("-o", "--output", type=click.Path(path_type=Path), help="File to write. [default: standard output]")
@input_option
@limit_options
@click.argument("command", nargs=-1, type=click.UNPROCESSED)
@click.pass_context
def check(
    context: click.Context,
    folder: Path | None,
    config: Path | None,
    update: bool,
    quick: bool,
    how: str | None,
    kind: str,
    output: Path | None,
    stdin: Path | None,
    timeout: float | None,
    accept_status: int | None,
    command: tuple[str, ...],
) -> None:
    """Fail if a program has synchronizations or transfers that it does not need and that are not allowed.

    COMMAND is the program with its arguments, which is measured first: ffm check ./app 1 2 3

    The exit status is 0 if the program passes, 1 if it does not, and 2 if it could not be checked, because the program
    itself failed or the configuration is wrong.
    """
    if quick and not command:
        raise click.UsageError("--quick measures: name the program, as in `ffm check --quick ./program`.")
    with _otherwise_two():
        from ffm.gate.baseline import read_baseline
        from ffm.gate.rules_file import read_rules

        rules, home = read_rules(config, Path.cwd())  # before a measurement that may take long
        baseline = home / rules.baseline
        known = read_baseline(baseline)
        if command:
            folder = _measured(command, folder, stdin, timeout, accept_status, quick=quick)
        results = _opened(folder)
        if update:
            _update(baseline, results, rules, known or [])
            return
        view = _judged(results, rules, known, rules.iterations if how is None else how)
        write_output([_formatted(view, kind)], output)
        if not view.passed and known is None and kind == "terminal":
            click.echo("To accept the present findings and fail only for new ones: ffm check --update", err=True)
    context.exit(0 if view.passed else 1)


@contextmanager
def _otherwise_two() -> Iterator[None]:
    """Make everything that keeps the program from being checked end with status 2."""
    try:
        yield
    except FfmError as error:
        raise CouldNotCheckError(str(error)) from error
    except OSError as error:
        from ffm.cli.system_errors import sentence

        raise CouldNotCheckError(sentence(error)) from error
    except MemoryError as error:
        raise CouldNotCheckError("there is not enough memory for this. Use a machine that has more.") from error


def _measured(
    command: tuple[str, ...],
    folder: Path | None,
    stdin: Path | None,
    timeout: float | None,
    accept_status: int | None,
    *,
    quick: bool,
) -> Path:
    """Measure the program again: what is up to date for the workflow may rest on another library."""
    from ffm.cli.quick import measure_quickly
    from ffm.cli.run import measure

    given = {"results": folder, "timeout": timeout, "accept_status": accept_status}
    settings: dict[str, Any] = {name: str(value) for name, value in given.items() if value is not None}
    settings = {"app": shlex.join(command), **settings}
    if quick:
        return measure_quickly(settings, stdin=stdin)
    return measure(settings, force=True, stdin=stdin)


def _opened(folder: Path | None) -> Results:
    from ffm.results.stored import open_results

    results = open_results(analysed_folder(folder))
    if results.newer:
        raise FfmError(
            f"{results.newer} The gate does not pass a program because an earlier measurement did. Measure it to the "
            "end, and check that."
        )
    if results.document.not_measured:
        raise FfmError(
            f"{len(results.document.not_measured)} sites of {results.document.application} were not measured "
            "(--sites), and the gate cannot pass what it does not know. Check a measurement of all sites, or one by "
            "quick mode."
        )
    if results.document.portion is not None:
        raise FfmError(
            f"{chosen_folder(folder)} is a measurement of a portion of the run, and the gate cannot pass what it "
            "does not know. Check a measurement of a whole run, which may be a short one."
        )
    return results


def _update(baseline: Path, results: Results, rules: Rules, known: list[KnownSites]) -> None:
    """Store what there is and is not allowed; keep what the baseline says about the other way of measuring."""
    from ffm.gate.baseline import of_kind, write_baseline
    from ffm.report.numbers import plural

    proved = results.document.proves
    judgement = _judgement(results, rules, None)
    sites = {calls.site.index: calls.site for calls in (*judgement.new, *judgement.known)}
    write_baseline(baseline, sites.values(), of_kind(known, proved=not proved))
    click.echo(f"Wrote {baseline}: {plural(len(sites), 'site')} {'with problems' if proved else 'that wait'}.")


def _judged(results: Results, rules: Rules, known: list[KnownSites] | None, how: str | None) -> CheckView:
    """Return what the gate says; `how` is where iterations begin."""
    from ffm.gate.baseline import of_kind
    from ffm.gate.iterations import AUTO, IteratedRun
    from ffm.report.check import check_view

    if how is None and rules.counts_iterations:
        how = AUTO
    iterated = None if how is None else IteratedRun(results, how)
    if known is not None:
        known = of_kind(known, proved=results.document.proves)
    judgement = _judgement(results, rules, known, iterated)
    return check_view(results.document, judgement, Path.cwd(), [] if iterated is None else iterated.threads)


def _judgement(
    results: Results, rules: Rules, known: list[KnownSites] | None, iterated: IteratedRun | None = None
) -> Judgement:
    from ffm.gate.judgement import judge
    from ffm.gate.problems import problem_calls, saved_together

    calls = problem_calls(results)
    return judge(calls, rules, known, lambda sites: saved_together(results, sites), results.document.wall_s, iterated)


def _formatted(view: CheckView, kind: str) -> bytes:
    import orjson

    from ffm.report.formats import check as formats
    from ffm.report.terminal.check import check_lines

    if kind == "json":
        return orjson.dumps(view, option=orjson.OPT_INDENT_2 | orjson.OPT_APPEND_NEWLINE)
    if kind == "sarif":
        log = formats.sarif(view, checkout())
        return orjson.dumps(log, option=orjson.OPT_INDENT_2 | orjson.OPT_APPEND_NEWLINE)
    if kind == "junit":
        return formats.junit(view)
    text = formats.github(view) if kind == "github" else "".join(line + "\n" for line in check_lines(view))
    return text.encode(errors="replace")
