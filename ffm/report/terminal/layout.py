"""Tables and paragraphs that fit the width without ever truncating a number."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import zip_longest

from rich.console import Group, RenderableType
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from ffm.report.names import cut_middle, shorten
from ffm.report.numbers import (
    ESTIMATOR_MEANINGS,
    ESTIMATORS,
    Estimator,
    Saving,
    Scale,
    percent,
    saved_together,
    shown_estimators,
)

NARROWEST = 60
"""Columns that every screen may use. Narrower terminals wrap the lines themselves; no number is truncated."""

GAP = 2
INDENT = 2
NARROWEST_FLEXIBLE = 16
"""A flexible column with longer texts has at least so many columns, or a line of its own."""
LONGEST_COMMAND = 32
"""Longest command, in columns, that has room for its meaning next to it."""


@dataclass(frozen=True, slots=True)
class Column:
    """A column of a table. A flexible one gets the width that the others leave over. `cut` shortens its texts; if it is
    `wrapped`, only words that are longer than a line. Where the width is not enough, flexible columns and those `below`
    go on a second line of each row.
    """

    header: str
    right: bool = False
    flexible: bool = False
    wrapped: bool = False
    below: bool = False
    style: str = ""
    cut: Callable[[str, int], str] = cut_middle


@dataclass(frozen=True, slots=True)
class Heading:
    """A line across a table instead of a row: some words, then a function's name."""

    words: str
    name: str


def table(
    columns: Sequence[Column], rows: Sequence[Sequence[str] | Heading], width: int, *, indent: int = INDENT
) -> RenderableType:
    """Lay out rows of text below headers; one column may be flexible. Texts are cut or go on below, numbers never."""
    widths = _widths(columns, rows)
    flexible = [index for index, column in enumerate(columns) if column.flexible]
    fixed = sum(size for index, size in enumerate(widths) if index not in flexible)
    room = width - indent - GAP * (len(columns) - 1) - fixed
    needed = max((min(widths[index], NARROWEST_FLEXIBLE) for index in flexible), default=0)
    if flexible and room < needed:
        return _in_two_lines(columns, rows, width, indent)
    widths = [min(size, room) if index in flexible else size for index, size in enumerate(widths)]
    lines = [_line(columns, [column.header for column in columns], widths, indent, header=True)]
    for row in rows:
        if isinstance(row, Heading):
            lines.append(_across(row, width, indent))
        else:
            lines += _row(columns, row, widths, indent)
    return Group(*lines)


def _in_two_lines(
    columns: Sequence[Column], rows: Sequence[Sequence[str] | Heading], width: int, indent: int
) -> RenderableType:
    """Lay out each row in two lines: the numbers, then the texts."""
    above = [index for index, column in enumerate(columns) if not (column.flexible or column.below)]
    texts = [index for index in range(len(columns)) if index not in above]
    numbers = [columns[index] for index in above]
    widths = _widths(numbers, [row if isinstance(row, Heading) else [row[index] for index in above] for row in rows])
    cut = next(columns[index] for index in texts if columns[index].flexible)
    text = Column(
        " and ".join(columns[index].header for index in texts), wrapped=cut.wrapped, flexible=True, cut=cut.cut
    )
    room = width - indent - INDENT
    lines = [
        _line(numbers, [column.header for column in numbers], widths, indent, header=True),
        _line([text], [text.header], [room], indent + INDENT, header=True),
    ]
    for row in rows:
        if isinstance(row, Heading):
            lines.append(_across(row, width, indent))
            continue
        lines.append(_line(numbers, [row[index] for index in above], widths, indent, header=False))
        lines += _row([text], [" ".join(row[index] for index in texts)], [room], indent + INDENT)
    return Group(*lines)


def _widths(columns: Sequence[Column], rows: Sequence[Sequence[str] | Heading]) -> list[int]:
    """Return how long the longest text of each column is."""
    cells = [row for row in rows if not isinstance(row, Heading)]
    return [max([len(column.header), *(len(row[index]) for row in cells)]) for index, column in enumerate(columns)]


def _across(row: Heading, width: int, indent: int) -> Text:
    words = " " * indent + row.words
    return _whole(words + shorten(row.name, width - len(words)), style="dim")


def _row(columns: Sequence[Column], row: Sequence[str], widths: Sequence[int], indent: int) -> list[Text]:
    return [_line(columns, cells, widths, indent, header=False) for cells in _lines(columns, row, widths)]


def _whole(text: str, style: str = "") -> Text:
    return Text(text, style=style, no_wrap=True, overflow="ignore")


def _lines(columns: Sequence[Column], row: Sequence[str], widths: Sequence[int]) -> list[list[str]]:
    """Return a row's cells, line by line: several if a wrapped text is longer than its column."""
    texts = [
        _wrapped(cell, size, column.cut) if column.wrapped else [cell]
        for column, cell, size in zip(columns, row, widths, strict=True)
    ]
    return [list(line) for line in zip_longest(*texts, fillvalue="")]


def _wrapped(text: str, width: int, cut: Callable[[str, int], str]) -> list[str]:
    """Break a text between its words into lines of a width; words that are longer than that are cut."""
    lines = [""]
    for word in text.split(" "):
        begun = f"{lines[-1]} " if lines[-1] else ""
        room = width - len(begun)
        if len(word) <= room:
            lines[-1] = begun + word
        elif len(word) > width and 2 * room >= width:
            lines[-1] = begun + cut(word, room)
        else:
            lines.append(cut(word, width))
    return lines


def _line(columns: Sequence[Column], cells: Sequence[str], widths: Sequence[int], indent: int, *, header: bool) -> Text:
    line = _whole(" " * indent)
    for index, (column, cell, size) in enumerate(zip(columns, cells, widths, strict=True)):
        text = column.cut(cell, size) if column.flexible and not header else cell
        last = index == len(columns) - 1
        padded = text.rjust(size) if column.right else text if last else text.ljust(size)
        line.append(padded, style="underline" if header and text else column.style)
        line.append("" if last else " " * GAP)
    return line


def run_title(application: str, scale: Scale) -> Text:
    """Return `als: 3.938 s of wall time`, with which the screens of a whole run begin."""
    return Text(f"{application}: {scale.seconds(scale.wall_s)} of wall time", style="bold")


def all_fixed(
    everything: Saving | None, scale: Scale, estimator: Estimator, without_equal_bytes: Saving | None
) -> list[RenderableType]:
    """Return the line that says what fixing everything would save; none if that is unknown or nothing."""
    together = saved_together(everything, scale, estimator, without_equal_bytes)
    return [paragraph(together, style="bold")] if together else []


def saving_columns(estimator: Estimator) -> list[Column]:
    """Return a column for each shown estimator, the chosen one in bold, then the interval if it is replay."""
    names = shown_estimators(estimator)
    columns = [Column(name, right=True, style="bold" if name == estimator else "") for name in names]
    return [*columns, Column("from, to", right=True)] if estimator == "replay" else columns


def saving_cells(scale: Scale, savings: Sequence[Saving], estimator: Estimator) -> list[list[str]]:
    """Return `155.785 s 11.45 %` by each shown estimator, aligned with the other rows."""
    texts = [
        [(scale.seconds(saving.seconds(name)), percent(saving.percent(name))) for name in shown_estimators(estimator)]
        for saving in savings
    ]
    widest = max((len(share) for row in texts for _, share in row), default=0)
    cells = [[f"{seconds} {share:>{widest}}" for seconds, share in row] for row in texts]
    if estimator == "replay":
        return [[*row, interval(scale, saving)] for row, saving in zip(cells, savings, strict=True)]
    return cells


def interval(scale: Scale, saving: Saving) -> str:
    """Return `1.203 1.511 s`, the smallest and largest saving; empty if they are unknown."""
    if saving.low_s is None or saving.high_s is None:
        return ""
    return f"{scale.seconds(saving.low_s).removesuffix(' s')} {scale.seconds(saving.high_s)}"


def meanings(estimator: Estimator) -> list[RenderableType]:
    """Explain the columns of `saving_columns`."""
    lines = [bullet(f"{name}: {ESTIMATOR_MEANINGS[name]}") for name in shown_estimators(estimator)]
    if estimator == "replay":
        lines.append(bullet("from, to: the smallest and largest saving, given what a trace does not show"))
    return lines


def whole_saving(label: str, scale: Scale, saving: Saving, estimator: Estimator) -> RenderableType:
    """Print `Saving: 155.785 s (11.45 % of the run)`; below it all estimators and the interval, unless
    all are zero.
    """
    seconds, share = scale.seconds(saving.seconds(estimator)), percent(saving.percent(estimator))
    title = Text(f"{label}: ", style="bold")
    title.append(f"{seconds} ({share} of the run)", style="not bold")
    names: tuple[Estimator, ...] = ESTIMATORS if saving.replay_s is None else ("replay", *ESTIMATORS)
    shown = (*(saving.seconds(name) for name in names), saving.high_s or 0.0)
    if all(scale.seconds(value) == scale.seconds(0.0) for value in shown):
        return title
    each = ", ".join(
        f"{name} {scale.seconds(saving.seconds(name))} ({percent(saving.percent(name))})" for name in names
    )
    parts: list[RenderableType] = [title, paragraph(f"by estimator: {each}")]
    if saving.low_s is not None and saving.high_s is not None:
        bounds = f"at least {scale.seconds(saving.low_s)}, at most {scale.seconds(saving.high_s)}"
        parts.append(paragraph(f"{bounds}; rests on {saving.rests_on}" if saving.rests_on else bounds))
    return Group(*parts)


def paragraph(text: str, *, indent: int = INDENT, style: str = "") -> RenderableType:
    """Return text that wraps at the width."""
    return Padding(Text(text, style=style), (0, 0, 0, indent))


def bullet(text: str, *, indent: int = INDENT) -> RenderableType:
    """Return wrapped text behind a dash, with its further lines aligned under the first."""
    grid = Table.grid(padding=0)
    grid.add_column(no_wrap=True)
    grid.add_column(overflow="fold")
    grid.add_row(" " * indent + "- ", Text(text))
    return grid


def heading(text: str) -> Text:
    """Return the title of a part of a screen, after an empty line."""
    return Text(f"\n{text}", style="bold")


def typed(command: str) -> RenderableType:
    """Return a command on its own line, never broken, so that it can be copied."""
    return Text("  " + command, style="cyan", no_wrap=True, overflow="ignore")


def following(*commands: tuple[str, str]) -> RenderableType:
    """List the commands to type next, each with what it shows: next to it, or below if one of the commands is long."""
    if max(len(command) for command, _ in commands) > LONGEST_COMMAND:
        pairs = ((typed(command), paragraph(meaning, indent=3 * INDENT)) for command, meaning in commands)
        return Group(*(part for pair in pairs for part in pair))
    grid = Table.grid(padding=(0, GAP, 0, 0))
    grid.add_column(no_wrap=True, style="cyan")
    grid.add_column(overflow="fold")
    for command, meaning in commands:
        grid.add_row("  " + command, meaning)
    return grid
