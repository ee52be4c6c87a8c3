"""The screen of `ffm sequence` and `ffm subsequence`."""

from __future__ import annotations

from rich.console import Group, RenderableType
from rich.text import Text

from ffm.report.commands import command
from ffm.report.names import cut_middle
from ffm.report.numbers import Scale, count, plural, ranges
from ffm.report.sequence import Operation, Reason, SequenceView
from ffm.report.terminal.findings import conditions, finding_text
from ffm.report.terminal.layout import (
    Column,
    Heading,
    bullet,
    following,
    heading,
    paragraph,
    table,
    whole_saving,
)

USUAL, PLACE = 80, 24
"""Columns of a terminal, and for file and line on such a one and on narrower ones."""

_PROBLEMS = {("synchronization",): "sync", ("transfer",): "transfer", ("synchronization", "transfer"): "both"}
"""`both`: an unneeded transfer that also synchronizes."""


def render_sequence(view: SequenceView, width: int = 80) -> RenderableType:
    """Lay out a sequence or subsequence for a terminal of the given width."""
    scale = Scale(view.wall_s)
    times = "" if view.recurrences == 1 else f", {count(view.recurrences)} times"
    if view.part is None:
        title = f"Sequence {view.sequence} of {view.application}: {plural(len(view.operations), 'operation')}"
        label = "Saving"
    else:
        title = (
            f"Operations {view.part[0]} to {view.part[1]} of {view.operations_in_sequence}, "
            f"sequence {view.sequence} of {view.application}"
        )
        label = "Saving of the subsequence"
    parts: list[RenderableType] = [
        Text(title + times, style="bold"),
        whole_saving(label, scale, view.saving, view.estimator),
        Text(
            f"With a problem: {plural(view.synchronization_problems, 'synchronization')}, "
            f"{plural(view.transfer_problems, 'transfer')}\n"
        ),
        _operations(view, scale, width),
    ]
    if view.part is None or view.part[1] == view.operations_in_sequence:
        parts.append(paragraph(_end(view)))
    if view.reasons:
        parts.append(heading("Why"))
        parts += [bullet(_reason(reason)) for reason in view.reasons]
    parts += conditions(view.keep, {entry.where.site: entry.number for entry in view.operations})
    parts += [heading("Next"), _next(view)]
    return Group(*parts)


def _operations(view: SequenceView, scale: Scale, width: int) -> RenderableType:
    """List the numbered lines, with a heading wherever the calling function changes."""
    columns = [
        Column("#", right=True),
        Column("call", flexible=True),
        Column("place", below=True),
        Column("problem"),
        Column("count", right=True),
        Column("alone", right=True),
        Column("site", right=True),
    ]
    rows: list[list[str] | Heading] = []
    caller = None
    for operation in view.operations:
        if operation.where.caller != caller:
            caller = operation.where.caller
            rows.append(Heading("in ", caller or "an unknown function"))
        rows.append(_row(operation, view, scale, max(width - USUAL, 0) + PLACE))
    return table(columns, rows, width)


def _row(operation: Operation, view: SequenceView, scale: Scale, room: int) -> list[str]:
    return [
        f"{operation.number}.",
        operation.where.call,
        cut_middle(operation.where.place, room),
        _PROBLEMS.get(tuple(sorted(operation.problems)), ", ".join(operation.problems)),
        count(operation.count),
        scale.seconds(operation.alone.seconds(view.estimator)),
        str(operation.where.site),
    ]


def _end(view: SequenceView) -> str:
    if view.ends_at is None:
        return "Ends at the end of the run."
    return f"Ends at a needed synchronization, which stays: {view.ends_at}."


def _reason(reason: Reason) -> str:
    operations = "operation" if len(reason.operations) == 1 else "operations"
    return f"{operations} {ranges(reason.operations)}: {finding_text(reason.finding)}"


def _next(view: SequenceView) -> RenderableType:
    which = f" --sequence {view.sequence}" if view.sequence != 1 else ""
    first = view.operations[0]
    commands = [
        (command(f"site {first.where.site}", view.results), f"operation {first.number} with its stack and verdict")
    ]
    if view.part is not None:
        commands.append((command(f"sequence {view.sequence}", view.results), "the whole sequence"))
    elif view.operations_in_sequence > 1:
        commands.append(
            (
                command(f"subsequence 2 {view.operations_in_sequence}{which}", view.results),
                "the estimate for a part, without a new run",
            )
        )
    return following(*commands)
