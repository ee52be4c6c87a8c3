"""The screen of `ffm report --by line`."""

from __future__ import annotations

from rich.console import Group, RenderableType
from rich.text import Text

from ffm.report.commands import command
from ffm.report.lines import LinesView
from ffm.report.names import cut_behind_place
from ffm.report.numbers import Scale, count, hidden_rows
from ffm.report.terminal.layout import (
    Column,
    all_fixed,
    bullet,
    following,
    heading,
    meanings,
    paragraph,
    run_title,
    saving_cells,
    saving_columns,
    table,
    whole_saving,
)


def render_lines(view: LinesView, width: int = 80) -> RenderableType:
    """Lay out the lines for a terminal of the given width."""
    scale = Scale(view.wall_s)
    parts: list[RenderableType] = [
        run_title(view.application, scale),
        *all_fixed(view.everything, scale, view.estimator, view.without_equal_bytes),
    ]
    if not view.lines and not view.hidden:
        return Group(*parts, paragraph(view.nothing))
    title = heading("Lines")
    title.append("  all calls that a line of the program makes or leads to", style="not bold")
    parts.append(title)
    if view.lines:
        columns = [
            *saving_columns(view.estimator),
            Column("sites", right=True),
            Column("calls", right=True),
            Column("line and call", flexible=True, cut=cut_behind_place),
        ]
        savings = saving_cells(scale, [line.saving for line in view.lines], view.estimator)
        rows = [
            [
                *saved,
                count(len(line.sites)),
                count(line.occurrences),
                f"{line.place}{'*' if line.conditional else ''} {', '.join(line.calls)}",
            ]
            for line, saved in zip(view.lines, savings, strict=True)
        ]
        parts.append(table(columns, rows, width))
    if view.hidden:
        parts.append(paragraph(hidden_rows(view.hidden, "line", view.estimator)))
    if view.everything is not None:
        parts += [Text(), whole_saving("All problems together", scale, view.everything, view.estimator)]
    if view.lines:
        parts += [heading("How to read this"), *meanings(view.estimator)]
        parts.append(bullet("Each row is one line fixed alone: do not add them up."))
        if any(line.conditional for line in view.lines):
            parts.append(bullet("* holds as long as certain other synchronizations stay; a site's screen names them."))
        first = view.lines[0]
        parts += [
            heading("Next"),
            following(
                (first.command, f"a call of {first.place} with its stack and verdict"),
                (command("remedies", view.results), "what to change, and every place that must change"),
            ),
        ]
    return Group(*parts)
