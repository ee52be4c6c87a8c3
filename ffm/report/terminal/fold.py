"""The screen of `ffm fold`."""

from __future__ import annotations

from rich.console import Group, RenderableType
from rich.text import Text

from ffm.report.commands import command
from ffm.report.fold import FoldSite, FoldView, Part
from ffm.report.numbers import Saving, Scale, count, hidden_rows, plural
from ffm.report.terminal.findings import conditions, finding_text
from ffm.report.terminal.layout import (
    Column,
    bullet,
    following,
    heading,
    paragraph,
    saving_cells,
    saving_columns,
    table,
    whole_saving,
)


def render_fold(view: FoldView, width: int = 80) -> RenderableType:
    """Lay out a fold for a terminal of the given width: its functions, with their sites below each."""
    scale = Scale(view.wall_s)
    lines = [line for part in view.parts for line in _lines(part, 0)]
    columns = [
        *saving_columns(view.estimator),
        Column("calls", right=True),
        Column("by calling function", flexible=True),
    ]
    cells = saving_cells(scale, [saving for saving, _, _ in lines], view.estimator)
    rows = [[*saved, count(calls), text] for saved, (_, calls, text) in zip(cells, lines, strict=True)]
    parts: list[RenderableType] = [
        Text(f"Fold on {view.name} of {view.application}: {plural(view.count, 'call')}", style="bold"),
        whole_saving("Saving", scale, view.saving, view.estimator),
        Text(),
    ]
    if rows:
        parts.append(table(columns, rows, width))
    if view.hidden:
        parts.append(paragraph(hidden_rows(view.hidden, "site", view.estimator)))
    sites = _sites(view.parts)
    if any(site.findings for site in sites):
        parts.append(heading("Why"))
        parts += _reasons(sites)
    parts += conditions(view.keep, {})
    if sites:
        first = sites[0].where.site
        parts += [
            heading("Next"),
            following((command(f"site {first}", view.results), "one call with its stack and verdict")),
        ]
    return Group(*parts)


def _lines(part: Part, depth: int) -> list[tuple[Saving, int, str]]:
    """Return saving, calls and text of a part and, indented, of everything below it."""
    indent = "  " * depth
    mark = "*" if part.conditional else ""
    lines = [(part.saving, part.count, f"{indent}{part.name}{mark}")]
    lines += [line for below in part.parts for line in _lines(below, depth + 1)]
    lines += [
        (site.saving, site.count, f"{indent}  {site.where.place}{site.reached} site {site.where.site}")
        for site in part.sites
    ]
    return lines


def _sites(parts: list[Part]) -> list[FoldSite]:
    return [site for part in parts for site in (*part.sites, *_sites(part.parts))]


def _reasons(sites: list[FoldSite]) -> list[RenderableType]:
    """List the findings about each site; sites with the same finding share one entry."""
    joined: dict[str, list[int]] = {}
    for site in sites:
        for finding in site.findings:
            joined.setdefault(finding_text(finding), []).append(site.where.site)
    return [bullet(f"{_named(numbers)}: {text}") for text, numbers in joined.items()]


def _named(numbers: list[int]) -> str:
    return ("site " if len(numbers) == 1 else "sites ") + ", ".join(map(str, sorted(numbers)))
