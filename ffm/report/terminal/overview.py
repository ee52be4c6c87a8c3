"""The screen of `ffm report`."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from rich.console import Group, RenderableType
from rich.text import Text

from ffm.report import not_measured, unproved
from ffm.report.commands import command, typed
from ffm.report.names import cut_before_place, cut_middle
from ffm.report.numbers import Scale, count, hidden_rows, percent, plural
from ffm.report.overview import Overview, PartialDownload, Row, Section
from ffm.report.terminal.kept_waits import costly_waits, waits_section
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
from ffm.report.waiting.shares import in_one_line


@dataclass(frozen=True, slots=True)
class Shape:
    """The columns that a section shows between the savings and the name, with their headers."""

    columns: Sequence[tuple[str, Callable[[Row], str]]]
    what: str
    cut: Callable[[str, int], str] = cut_middle


FOLDS = Shape([("sites", lambda row: count(row.operations)), ("calls", lambda row: count(row.calls))], "call")
SEQUENCES = Shape(
    [("length", lambda row: count(row.operations)), ("number", lambda row: str(row.number))],
    "starts at",
    cut_before_place,
)
POINTS = Shape(
    [("site", lambda row: str(row.number)), ("calls", lambda row: count(row.calls))], "call and place", cut_before_place
)


def render_overview(view: Overview, width: int = 80) -> RenderableType:
    """Lay out the overview for a terminal of the given width."""
    scale = Scale(view.wall_s)
    parts: list[RenderableType] = _head(view, scale)
    if view.command:
        parts.append(paragraph(typed(view.command, view.stdin), style="dim"))
    if unproved.recorded(view.origin):
        parts.append(paragraph(unproved.recorded(view.origin)))
    if view.portion:
        parts.append(paragraph(view.portion))
    if view.stages:
        costs = "; ".join(f"{c.stage} {scale.seconds(c.wall_s)} ({c.ratio:.2f}x)" for c in view.stages)
        parts.append(paragraph(f"Runs: {costs}."))
    parts += _path(view)
    if view.unproved or view.unproved_hidden:
        parts += _unproved(view, scale, len(view.unproved))
    elif view.nothing:
        parts += [heading(view.nothing)]
    else:
        for section, shape in ((view.folds, FOLDS), (view.sequences, SEQUENCES), (view.points, POINTS)):
            parts += _section(section, shape, view, scale, width)
        parts += _together(view, scale)
        parts += _legend(view)
    if view.unknown_lines:
        parts += [Text(), paragraph(view.unknown_lines)]
    parts += costly_waits(view.costly_waits, scale)
    left_out = [one.sentence(scale) for one in view.not_measured]
    parts += waits_section(not_measured.HEADING, left_out, not_measured.ADVICE, 0, LEFT_OUT_ROWS)
    if view.downloads:
        parts.append(heading("Downloaded and not touched"))
        parts += [bullet(_untouched(one, scale)) for one in view.downloads]
    if view.matching is not None and view.matching.unmatched_s > 0:
        parts.append(heading("Not matched between the runs"))
        parts.append(
            paragraph(
                f"{scale.seconds(view.matching.unmatched_s)} "
                f"({percent(scale.share(view.matching.unmatched_s))}) of operations did not match; "
                f"{scale.seconds(view.matching.matched_s)} matched. The estimates leave out what did not match."
            )
        )
        parts += [bullet(reason) for reason in view.matching.reasons]
    if view.notes:
        parts.append(heading("Notes"))
        parts += [bullet(note) for note in view.notes]
    return Group(*parts)


LEFT_OUT_ROWS = 20
"""Of the sites that were not measured, on the whole screen."""

FIRST_ROWS = 8
"""Rows of a section on the first screen."""


def render_first_screen(view: Overview, width: int = 80) -> RenderableType:
    """Lay out the most important part of the overview for a terminal: its best rows, without single points."""
    scale = Scale(view.wall_s)
    parts: list[RenderableType] = [
        *_head(view, scale),
        *([paragraph(view.portion)] if view.portion else []),
        *_path(view),
    ]
    if view.unproved or view.unproved_hidden:
        parts += [paragraph(unproved.recorded(view.origin)), *_unproved(view, scale, FIRST_ROWS)]
    elif view.nothing:
        parts += [heading(view.nothing)]
    else:
        for section, shape in ((view.folds, FOLDS), (view.sequences, SEQUENCES)):
            left = len(section.rows) - FIRST_ROWS
            hidden = 0 if section.rows else section.hidden
            first = replace(section, rows=section.rows[:FIRST_ROWS], hidden=hidden)
            parts += _section(first, shape, view, scale, width)
            if left > 0:
                parts.append(paragraph(f"and {left} more"))
        parts += _together(view, scale)
    if view.unknown_lines:
        parts += [Text(), paragraph(view.unknown_lines)]
    parts += costly_waits(view.costly_waits, scale, FIRST_ROWS)
    left_out = [one.sentence(scale) for one in view.not_measured]
    parts += waits_section(not_measured.HEADING, left_out, not_measured.ADVICE, 0, FIRST_ROWS)
    notes = f", and {plural(len(view.notes), 'note')} on the measurement" if view.notes else ""
    following_commands = [(command("report", view.results), f"all of this, with each single point{notes}")]
    if not view.nothing:
        following_commands.append(
            (command("remedies", view.results), "what to change, and every place that must change")
        )
    parts += [heading("Next"), following(*following_commands)]
    return Group(*parts)


def _head(view: Overview, scale: Scale) -> list[RenderableType]:
    """Show how long the run takes, and how much of that could be saved."""
    fixed = all_fixed(view.everything, scale, view.estimator, view.without_equal_bytes)
    return [run_title(view.application, scale), *fixed]


def _path(view: Overview) -> list[RenderableType]:
    """Show what the run waits for, in one line."""
    if not view.path:
        return []
    opens = command("path", view.results)
    return [paragraph(f"Critical path: {in_one_line(view.path)}; `{opens}` shows it.")]


def _unproved(view: Overview, scale: Scale, most: int) -> list[RenderableType]:
    """Show the sites about which nothing is proved, at most this many."""
    shown = bool(view.unproved)
    parts: list[RenderableType] = [heading(unproved.heading(shown=shown))]
    parts += [bullet(waits.sentence(scale)) for waits in view.unproved[:most]]
    if len(view.unproved) > most:
        parts.append(paragraph(f"and {len(view.unproved) - most} more"))
    if view.unproved_hidden:
        less = f"less than {percent(view.hidden_below_percent)} of the run even at most"
        parts.append(paragraph(f"{plural(view.unproved_hidden, 'site')} hidden (see --all) that would save {less}"))
    parts.append(paragraph(unproved.advice(view.origin, shown=shown)))
    return parts


def _untouched(one: PartialDownload, scale: Scale) -> str:
    """Return `cudaMemcpy als.cu:994 (site 9): Of 4 MiB ...; a smaller download saves at most 0.120 s (1.20 %)`."""
    saved = one.download.saving_s
    text = f"{one.where}: {one.download.text}"
    if saved == 0:
        return text
    return f"{text} A smaller download saves at most {scale.seconds(saved)} ({percent(scale.share(saved))})."


def _section(section: Section, shape: Shape, view: Overview, scale: Scale, width: int) -> list[RenderableType]:
    title = heading(section.title)
    title.append(f"  {section.meaning}", style="not bold")
    parts: list[RenderableType] = [title]
    if section.rows:
        columns = [
            *saving_columns(view.estimator),
            *(Column(header, right=True) for header, _ in shape.columns),
            Column(shape.what, flexible=True, cut=shape.cut),
        ]
        savings = saving_cells(scale, [row.saving for row in section.rows], view.estimator)
        rows = [
            [*saved, *(text(row) for _, text in shape.columns), row.name + ("*" if row.conditional else "")]
            for row, saved in zip(section.rows, savings, strict=True)
        ]
        parts.append(table(columns, rows, width))
    elif not section.hidden:
        parts.append(paragraph("none"))
    if section.hidden:
        parts.append(paragraph(hidden_rows(section.hidden, "row", view.estimator)))
    return parts


def _together(view: Overview, scale: Scale) -> list[RenderableType]:
    """Show what all problems together would save, and how much of the run this is based on."""
    parts: list[RenderableType] = []
    if view.everything is not None:
        parts.append(Text())
        parts.append(whole_saving("All problems together", scale, view.everything, view.estimator))
    if view.explained_percent is not None:
        parts.append(
            paragraph(
                f"Stage 2 explains {percent(view.explained_percent)} of the time of the threads that called the driver."
            )
        )
    return parts


def _legend(view: Overview) -> list[RenderableType]:
    rows = [*view.folds.rows, *view.sequences.rows, *view.points.rows]
    if not rows:
        return []
    parts: list[RenderableType] = [heading("How to read this"), *meanings(view.estimator)]
    parts.append(bullet("A call can be in a fold, a sequence and a single point: do not add up the lists."))
    if any(row.conditional for row in rows):
        parts.append(bullet("* holds as long as certain other synchronizations stay; the row's screen names them."))
    opens = {
        "Folds": "one fold, by calling function",
        "Sequences": "one sequence, its operations numbered",
        "Single points": "one call with its stack and verdict",
    }
    commands = [
        (section.rows[0].command, opens[section.title])
        for section in (view.sequences, view.folds, view.points)
        if section.rows
    ]
    if commands:
        commands.append((command("remedies", view.results), "what to change, and every place that must change"))
        parts += [heading("Next"), following(*commands)]
    return parts
