"""`ffm apply-remedy`: run the program with fixes applied, and compare times before and after with the estimate."""

from __future__ import annotations

import dataclasses
import re
from pathlib import Path
from typing import TYPE_CHECKING

import click

from ffm.cli.options import json_option, limit_options, open_chosen, results_option, view_command
from ffm.errors import FfmError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ffm.remedy.correct import ProgramRun
    from ffm.remedy.layout import Counted
    from ffm.remedy.reasons import Reason
    from ffm.remedy.selection import Remedy
    from ffm.results.stored import Results


class DiffersError(FfmError):
    """A corrected program does not do the same as the original."""

    help = "Correct its sites one by one, with --site N, to find the one that matters."


@click.command(name="apply-remedy", cls=view_command("ffm.report.remedies.outcome:Outcome"))
@click.option(
    "--cudaFree-hoist", "hoist", is_flag=True, help="Serve device memory from a pool, so that frees do not wait."
)
@click.option("--skip-syncs", "skip", is_flag=True, help="Make explicit synchronizations return at once.")
@click.option(
    "--async-transfers",
    "asynchronous",
    is_flag=True,
    help="Make synchronous transfers return at once; wait at the first use instead.",
)
@click.option("--reuse-uploads", "reuse", is_flag=True, help="Replace repeated uploads by copies on the device.")
@click.option("--all", "everything", is_flag=True, help="Apply all of these, which is the default.")
@click.option(
    "--site",
    "chosen",
    type=int,
    multiple=True,
    metavar="N",
    help="Correct only this site, numbered as in `ffm site N`.",
)
@click.option(
    "--sequence",
    type=int,
    metavar="N",
    help="Correct only the sites of this sequence, numbered as in `ffm sequence N`.",
)
@click.option(
    "--runs",
    type=click.IntRange(min=1),
    default=3,
    show_default=True,
    help="How many times to run each version; the versions alternate.",
)
@click.option(
    "--compare",
    "files",
    type=click.Path(path_type=Path, dir_okay=False),
    multiple=True,
    metavar="FILE",
    help="Also compare this file, which the program writes.",
)
@click.option(
    "--memory",
    "memory_mib",
    type=click.IntRange(min=0),
    default=256,
    show_default=True,
    metavar="MIB",
    help="How much host memory, and how much device memory, corrections may take; never more than a quarter of what "
    "is free.",
)
@click.option(
    "--twin",
    type=click.Path(path_type=Path, dir_okay=False),
    metavar="PROGRAM",
    help="A version corrected by hand, to run with the same arguments for comparison.",
)
@click.option("--yes", "agreed", is_flag=True, help="Run the command that the results name without asking.")
@click.option(
    "--stdin",
    type=click.Path(path_type=Path),
    metavar="FILE",
    help="What each run reads from its standard input, from the start of the file; `-` for a copy of this command's "
    "own. [default: the file of `< FILE`, else what was read when the program was measured]",
)
@limit_options
@results_option
@json_option
@click.argument("arguments", nargs=-1, type=click.UNPROCESSED)
def apply_remedy(
    hoist: bool,
    skip: bool,
    asynchronous: bool,
    reuse: bool,
    everything: bool,
    chosen: tuple[int, ...],
    sequence: int | None,
    runs: int,
    files: tuple[Path, ...],
    memory_mib: int,
    twin: Path | None,
    agreed: bool,
    stdin: Path | None,
    timeout: float | None,
    accept_status: int | None,
    folder: Path | None,
    as_json: bool,
    arguments: tuple[str, ...],
) -> None:
    """Run the unmodified program with fixes applied to chosen call stacks, and compare it with the program as it is.

    Without -- ./app ARGUMENTS, the measured command is run. Every fix that fits is applied unless you name specific
    ones. After --sequence N, START END select a part of the sequence.

    A fix is left out unless it should save more than it costs. Unless you name fixes or sites, all of them together
    must also save more than it costs to correct a program at all, which is some milliseconds. While the program runs,
    ffm compares fixes with the original calls now and then, and takes back those that do not make it faster.

    The exit status is 1 if the corrected program ends differently or writes different output.
    """
    from ffm.remedy.selection import Remedy

    results = open_chosen(folder)
    if results.document.portion is not None:
        raise FfmError(
            "these results are of a portion of the run, and the program may need its calls elsewhere, so none is "
            "corrected automatically. Measure the whole run, or change the program by hand: `ffm remedies`."
        )
    named = zip(Remedy, (hoist, skip, asynchronous, reuse), strict=True)
    remedies = [remedy for remedy, wanted in named if wanted or everything]
    part, command = _split(arguments, sequence)
    _apply(
        results,
        remedies or list(Remedy),
        _among(results, chosen, sequence, part),
        command or _measured_command(results, agreed=agreed),
        runs=runs,
        files=list(files),
        memory_bytes=memory_mib << 20,
        twin=twin,
        stdin=_input(results, stdin),
        timeout_s=timeout,
        accept_status=accept_status,
        as_json=as_json,
        named=bool(remedies or chosen or sequence is not None) and not everything,
    )


def _input(results: Results, given: Path | None) -> Path | None:
    """Return what each run reads: what is named, or else what was read when the program was measured.

    Raises:
        FfmError: It cannot be read.
    """
    import tempfile

    from ffm.cli.standard_input import chosen_input, measured_input
    from ffm.results.folder.paths import ResultsFolder

    scratch = click.get_current_context().with_resource(tempfile.TemporaryDirectory(prefix="ffm-input-"))
    return chosen_input(given, ResultsFolder(Path(scratch))) or measured_input(results)


def _measured_command(results: Results, *, agreed: bool) -> list[str]:
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


def _split(arguments: tuple[str, ...], sequence: int | None) -> tuple[tuple[int, int] | None, list[str]]:
    """Split START and END, which may follow --sequence N, from the front of the command."""
    words = list(arguments)
    if sequence is not None and len(words) >= 2 and words[0].isdigit() and words[1].isdigit():
        return (int(words[0]), int(words[1])), words[2:]
    return None, words


def _among(
    results: Results, chosen: tuple[int, ...], sequence: int | None, part: tuple[int, int] | None
) -> set[int] | None:
    """Return the sites that the options select; None means all."""
    from ffm.results.stored import sequence_operations

    count = len(results.document.sites)
    for number in chosen:
        if not 1 <= number <= count:
            raise FfmError(
                f"there is no site {number}: the sites of {results.document.application} are numbered 1 to {count}."
            )
    among = {number - 1 for number in chosen}
    if sequence is not None:
        operations = sequence_operations(results.document, sequence)
        start, end = part or (1, len(operations))
        if not 1 <= start <= end <= len(operations):
            raise FfmError(
                f"sequence {sequence} has operations 1 to {len(operations)}, so {start} to {end} is not part of it."
            )
        among |= {operation.site for operation in operations[start - 1 : end]}
    return among if chosen or sequence is not None else None


def _why_nothing(results: Results, among: set[int] | None) -> str:
    """Explain why no correction fits the selected site with the largest saving."""
    from ffm.remedy.fitness import left

    reasons = {index: why for index, why in left(results.document, []).items() if among is None or index in among}
    if not reasons:
        return "`ffm remedies` shows which options correct each problem."
    return f"{_dearest(results, reasons)} `ffm remedies` gives the reason for each problem."


def _dearest(results: Results, reasons: dict[int, Reason]) -> str:
    """Return the reason at the site with the largest saving."""
    from ffm.report.remedies.uncorrected import why_not

    sites = results.document.sites
    most = max(reasons, key=lambda index: sites[index].benefit.expected_s)
    return f"Site {most + 1}, {sites[most].call}: {why_not(reasons[most])}."


def _no_gain(results: Results, reasons: dict[int, Reason], options: list[Remedy]) -> FfmError:
    """Return the error that says why nothing pays at the site with the largest saving, and what to do instead."""
    from ffm.report.remedies.uncorrected import by_hand

    advice = f"{_dearest(results, reasons)} {by_hand(results.document, options)}"
    return FfmError(f"nothing to apply: no correction is expected to save time. {advice}")


def _apply(
    results: Results,
    remedies: list[Remedy],
    among: set[int] | None,
    command: list[str],
    *,
    runs: int,
    files: list[Path],
    memory_bytes: int,
    twin: Path | None,
    stdin: Path | None,
    timeout_s: float | None,
    accept_status: int | None,
    as_json: bool,
    named: bool,
) -> None:
    import orjson
    from rich.console import Console
    from rich.text import Text

    from ffm.plain_text import plain
    from ffm.remedy.correct import compare_runs
    from ffm.remedy.selection import plan
    from ffm.remedy.worth import worthwhile_in
    from ffm.report.remedies.outcome import outcome
    from ffm.report.terminal.outcome import lines

    fitting = plan(results.document, remedies, among)
    if not any(site.remedies for site in fitting):
        raise FfmError(
            f"nothing to apply: no selected site of {results.document.application} can be corrected by "
            f"{', '.join(f'--{remedy}' for remedy in remedies)}. {_why_nothing(results, among)}"
        )
    worth = worthwhile_in(results, fitting, named=named, memory_bytes=memory_bytes)
    if not worth.planned:
        # To name fixes does without the cost of correcting the program at all: only some may then pay, or none.
        pay = [] if named else worthwhile_in(results, fitting, named=True, memory_bytes=memory_bytes).remedies()
        raise _no_gain(results, worth.left, pay)
    with Console(stderr=True).status("") as status:
        comparison = compare_runs(
            command,
            worth.planned,
            runs=runs,
            files=files,
            memory_bytes=memory_bytes,
            twin=None if twin is None else [str(twin.absolute()), *command[1:]],
            timeout_s=timeout_s,
            stdin=stdin,
            require=lambda run: _require_sound(results, command, run, accept_status),
            require_corrected=lambda counted: _require_planned_calls(results, command, counted),
            progress=lambda line: status.update(Text(plain(line))),
        )
    answer = outcome(results, comparison, command, among, worth.left, worth.costs)
    if as_json:
        click.echo(orjson.dumps(dataclasses.asdict(answer), option=orjson.OPT_INDENT_2))
    else:
        for line in lines(answer):
            click.echo(line)
    if answer.differences:
        raise _differs(answer.differences, comparison.corrected[-1], results)


def _differs(differences: list[str], run: ProgramRun, results: Results) -> DiffersError:
    """Return the error that says what the corrected program did otherwise, and where its output is."""
    kept = _kept(run.output, results.folder, "corrected")
    return DiffersError(" ".join(["the corrected program does not behave like the original.", *differences, kept]))


def _require_sound(results: Results, command: list[str], run: ProgramRun, accepted: int | None) -> None:
    """Refuse a program that fails without corrections, unless it did so when it was measured, or is said to.

    Raises:
        FfmError: Says how it ended, and how its output does.
    """
    ending, codes = run.ending, {0, accepted}
    if results.document.run is not None:
        measured = results.document.run.status
        codes |= {measured.code, measured.accepted}
    if ending.code is not None and ending.code in codes and not ending.timed_out:
        return
    other = "" if ending.code is None else f", or give --accept-status {ending.code} if it should end so"
    raise FfmError(
        f"{command[0]} {ending} without corrections. Fix the program or its arguments first{other}. "
        f"{_kept(run.output, results.folder, 'uncorrected')}"
    )


def _require_planned_calls(results: Results, command: list[str], counted: Sequence[Counted]) -> None:
    """Refuse a program that makes no planned call, instead of running all pairs of it to find no saving.

    Raises:
        FfmError: Says why its call stacks are not those that were measured.
    """
    if any(tally.calls for process in counted for tally in process.tallies):
        return
    if any(process.values["stopped"] for process in counted):
        return  # the outcome says why
    cause = (
        "the program, CUDA's runtime or another library on the call stacks is not the one that was measured: it was "
        "rebuilt, or LD_LIBRARY_PATH names another one"
        if command == results.document.command
        else f"{command[0]} is not the measured program, or does not come to these calls with these arguments"
    )
    raise FfmError(
        f"nothing was corrected: none of the planned call stacks occurred. Probably {cause}. Measure again what you "
        "want to correct: ffm run ./app ARGUMENTS."
    )


def _kept(output: bytes, folder: Path, name: str) -> str:
    """Write a program's output into a results folder, beside the logs of the stages; say where it is."""
    from ffm.results.folder.output import where_output
    from ffm.results.folder.paths import ResultsFolder
    from ffm.whole_file import write_whole

    file = ResultsFolder(folder).output(name)
    try:
        write_whole(file, output)
    except OSError as error:
        return f"Its output cannot be kept in {file}: {error.strerror}."
    return where_output(file)
