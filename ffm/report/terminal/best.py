"""The screen of `ffm subsequence --best`."""

from __future__ import annotations

from rich.console import Group, RenderableType
from rich.text import Text

from ffm.report.best import BestView
from ffm.report.numbers import Scale, count, percent
from ffm.report.terminal.layout import (
    Column,
    Heading,
    bullet,
    following,
    heading,
    paragraph,
    saving_cells,
    saving_columns,
    table,
    whole_saving,
)


def render_best(view: BestView, width: int = 80) -> RenderableType:
    """Lay out the best parts for a terminal of the given width, fewest places first."""
    scale = Scale(view.wall_s)
    parts: list[RenderableType] = [
        Text(f"Best parts of sequence {view.sequence} of {view.application}", style="bold"),
        whole_saving("The whole sequence", scale, view.whole, view.estimator),
        Text(),
    ]
    if not view.parts:
        return Group(*parts, paragraph("No part of it saves anything."))
    columns = [
        Column("places", right=True),
        Column("operations", right=True),
        *saving_columns(view.estimator),
        Column("of all", right=True),
    ]
    savings = saving_cells(scale, [part.saving for part in view.parts], view.estimator)
    rows: list[list[str] | Heading] = []
    for part, cells in zip(view.parts, savings, strict=True):
        rows.append([count(part.places), f"{part.start}-{part.end}", *cells, percent(part.share)])
        rows.append(Heading("", _ends(f"{part.first.call} {part.first.place}", f"{part.last.call} {part.last.place}")))
    parts += [
        table(columns, rows, width),
        heading("How to read this"),
        bullet("places: distinct source lines to change; for a cudaFree, also the line that allocates"),
        bullet("Each part saves more than any part with as few places; parts overlap, so do not add them up."),
        heading("Next"),
        following((view.parts[-1].command, "the operations of the last part")),
    ]
    return Group(*parts)


def _ends(first: str, last: str) -> str:
    return f"  {first}" if first == last else f"  {first} to {last}"
