"""`ffm apply-remedy`: run the program with fixes applied, and compare times before and after with the estimate."""

from __future__ import annotations

import dataclasses
from pathlib import Path
from typing import TYPE_CHECKING

import click

from ffm.cli.interruption import interruptible
from ffm.cli.measured_command import input_of, measured_command
from ffm.cli.options import json_option, limit_options, open_chosen, results_option, view_command
from ffm.cli.refused_remedies import differs, no_gain, nothing_fits, require_planned_calls, require_sound
from ffm.errors import FfmError

if TYPE_CHECKING:
    from ffm.remedy.plan_file import Correction
    from ffm.results.stored import Results


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
    from ffm.remedy.plan_file import Correction

    results = open_chosen(folder)
    if results.document.portion is not None:
        raise FfmError(
            "these results are of a portion of the run, and the program may need its calls elsewhere, so none is "
            "corrected automatically. Measure the whole run, or change the program by hand: `ffm remedies`."
        )
    named = zip(Correction, (hoist, skip, asynchronous, reuse), strict=True)
    corrections = [correction for correction, wanted in named if wanted or everything]
    part, command = _split(arguments, sequence)
    _apply(
        results,
        corrections or list(Correction),
        _among(results, chosen, sequence, part),
        command or measured_command(results, agreed=agreed),
        runs=runs,
        files=list(files),
        memory_bytes=memory_mib << 20,
        twin=twin,
        stdin=input_of(results, stdin),
        timeout_s=timeout,
        accept_status=accept_status,
        as_json=as_json,
        named=bool(corrections or chosen or sequence is not None) and not everything,
    )


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


def _apply(
    results: Results,
    corrections: list[Correction],
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
    from ffm.report.terminal.printing import print_lines

    fitting = plan(results.document, corrections, among)
    if not any(site.corrections for site in fitting):
        raise nothing_fits(results, corrections, among)
    worth = worthwhile_in(results, fitting, named=named, memory_bytes=memory_bytes)
    if not worth.planned:
        # Fixes that are named need not make up for correcting the program at all: then some may pay, or none.
        pay = [] if named else worthwhile_in(results, fitting, named=True, memory_bytes=memory_bytes).corrections()
        raise no_gain(results, worth.left, pay)
    stopped = interruptible(f"{command[0]} and all that it started were stopped; the results are as they were.")
    with stopped, Console(stderr=True).status("") as status:
        comparison = compare_runs(
            command,
            worth.planned,
            runs=runs,
            files=files,
            memory_bytes=memory_bytes,
            twin=None if twin is None else [str(twin.absolute()), *command[1:]],
            timeout_s=timeout_s,
            stdin=stdin,
            require=lambda run: require_sound(results, command, run, accept_status),
            require_corrected=lambda counted: require_planned_calls(results, command, counted),
            progress=lambda line: status.update(Text(plain(line))),
        )
    answer = outcome(results, comparison, command, among, worth.left, worth.costs)
    if as_json:
        click.echo(orjson.dumps(dataclasses.asdict(answer), option=orjson.OPT_INDENT_2))
    else:
        print_lines(lines, answer)
    if answer.differences:
        raise differs(answer.differences, comparison.corrected[-1], results)
