"""The screen of `ffm doctor`."""

from __future__ import annotations

import msgspec
from rich.console import Console, RenderableType
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from ffm.doctor.diagnosis import Diagnosis, State
from ffm.doctor.examination import HOOKED, Examination
from ffm.doctor.trial import Trial

MARKS = {State.GOOD: ("ok", "green"), State.LIMITED: ("limited", "yellow"), State.MISSING: ("missing", "bold red")}


def as_json_bytes(diagnosis: Diagnosis) -> bytes:
    """Return all findings as indented JSON."""
    return msgspec.json.format(msgspec.json.encode(diagnosis), indent=2)


def print_diagnosis(diagnosis: Diagnosis, console: Console | None = None) -> None:
    """Print the diagnosis, one line per finding, then what is lost where functions could not be replaced."""
    console = console or Console(highlight=False)
    table = Table.grid(padding=(0, 2))
    table.add_column()
    table.add_column(no_wrap=True)
    table.add_column(overflow="fold")
    for finding in diagnosis.findings:
        mark, style = MARKS[finding.state]
        table.add_row(Text(mark, style), finding.subject, Text(finding.says))
    _print_unpadded(table, console)
    if diagnosis.examination is not None:
        _print_hooks(diagnosis.examination, console)
    if diagnosis.trials is not None:
        _print_trials(diagnosis.trials, console)
    console.print()
    if diagnosis.ready:
        console.print("Programs can be measured on this machine.", style="green")
    else:
        missing = [finding.subject for finding in diagnosis.findings if finding.state is State.MISSING]
        console.print(f"Nothing can be measured on this machine: see {', '.join(missing)} above.", style="bold red")


def _print_unpadded(what: RenderableType, console: Console) -> None:
    """Print without the spaces with which Rich fills the lines of a table: files and pipes would get them, too."""
    with console.capture() as captured:
        console.print(what)
    for line in captured.get().splitlines():
        console.file.write(f"{line.rstrip()}\n")


def _print_hooks(examination: Examination, console: Console) -> None:
    """Print the functions that could not simply be replaced; most can, and need no line."""
    odd = [hook for hook in examination.hooks if hook.how != "replace-fast"]
    if not odd:
        return
    table = Table(box=None, header_style="bold", pad_edge=False)
    for title in ("function", "hooked by", "why, and what is lost"):
        table.add_column(title, no_wrap=title == "function")
    for hook in odd:
        why = f"same code as {hook.reason}" if hook.how == "shared" else hook.reason
        lost = "" if hook.how in HOOKED else f"; {hook.lost}"
        table.add_row(hook.function, hook.how, Text(why + lost))
    _print_unpadded(Padding(table, (1, 0, 0, 0)), console)


def _print_trials(trials: list[Trial], console: Console) -> None:
    odd = [trial for trial in trials if trial.how != "replace-fast"]
    if not odd:
        return
    table = Table(box=None, header_style="bold", pad_edge=False)
    for title in ("export", "could be hooked by", "why not by replacing"):
        table.add_column(title, no_wrap=title == "export")
    for trial in odd:
        table.add_row(", ".join(trial.names) or hex(trial.offset), trial.how, Text(trial.reason))
    _print_unpadded(Padding(table, (1, 0, 0, 0)), console)
