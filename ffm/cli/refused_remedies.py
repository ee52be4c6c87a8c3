"""What `ffm apply-remedy` answers where it corrects nothing, or a program that it must not correct."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from ffm.errors import FfmError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ffm.remedy.correct import ProgramRun
    from ffm.remedy.layout import Counted
    from ffm.remedy.plan_file import Correction
    from ffm.remedy.reasons import Reason
    from ffm.results.stored import Results


class DiffersError(FfmError):
    """A corrected program does not do the same as the original."""

    help = "Correct its sites one by one, with --site N, to find the one that matters."


def nothing_fits(results: Results, corrections: list[Correction], among: set[int] | None) -> FfmError:
    """Return the error that says why these fixes correct none of the selected sites; None selects all."""
    return FfmError(
        f"nothing to apply: no selected site of {results.document.application} can be corrected by "
        f"{', '.join(f'--{correction}' for correction in corrections)}. {_why_nothing(results, among)}"
    )


def _why_nothing(results: Results, among: set[int] | None) -> str:
    """Explain why no correction fits the selected site with the largest saving."""
    from ffm.remedy.fitness import left

    reasons = {index: why for index, why in left(results.document, []).items() if among is None or index in among}
    if not reasons:
        return "`ffm remedies` shows which options correct each problem."
    return f"{_most_costly(results, reasons)} `ffm remedies` gives the reason for each problem."


def _most_costly(results: Results, reasons: dict[int, Reason]) -> str:
    """Return the reason at the site with the largest saving."""
    from ffm.report.remedies.uncorrected import why_not

    sites = results.document.sites
    most = max(reasons, key=lambda index: sites[index].benefit.expected_s)
    return f"Site {most + 1}, {sites[most].call}: {why_not(reasons[most])}."


def no_gain(results: Results, reasons: dict[int, Reason], options: list[Correction]) -> FfmError:
    """Return the error that says why nothing pays at the site with the largest saving, and what to do instead."""
    from ffm.report.remedies.uncorrected import by_hand

    advice = f"{_most_costly(results, reasons)} {by_hand(results.document, options)}"
    return FfmError(f"nothing to apply: no correction is expected to save time. {advice}")


def differs(differences: list[str], run: ProgramRun, results: Results) -> DiffersError:
    """Return the error that says what the corrected program did otherwise, and where its output is."""
    kept = _kept(run.output, results.folder, "corrected")
    return DiffersError(" ".join(["the corrected program does not behave like the original.", *differences, kept]))


def require_sound(results: Results, command: list[str], run: ProgramRun, accepted: int | None) -> None:
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


def require_planned_calls(results: Results, command: list[str], counted: Sequence[Counted]) -> None:
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
