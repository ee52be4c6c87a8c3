"""The screen of `ffm remedies` (dissertation, Figures 6.3 and 6.5)."""

from __future__ import annotations

from collections.abc import Sequence

from rich.console import Group, RenderableType
from rich.text import Text

from ffm.model.groups.names import starts_a_thread
from ffm.report.commands import command
from ffm.report.names import shorten
from ffm.report.numbers import Estimator, Scale, count, hidden_rows, plural
from ffm.report.remedies.view import OWN_LINE, RemediesView, RemedyPlace, RemedyView
from ffm.report.terminal.kept_waits import costly_waits
from ffm.report.terminal.layout import INDENT, all_fixed, bullet, following, heading, paragraph, typed
from ffm.results.places import StackFrame

INNER_FRAMES, OUTER_FRAMES = 3, 4
"""Frames of a stack that the screen shows, outwards from the call; `ffm site` shows all."""
LONGEST_NAME = 48
"""Columns for a function's name."""
LONGEST_COMMAND = 60
"""Columns for a command after other words."""


def render_remedies(view: RemediesView, width: int = 80) -> RenderableType:
    """Lay out all remedies for a terminal, largest benefit first."""
    del width  # paragraphs wrap by themselves
    scale = Scale(view.wall_s)
    places = plural(len(view.remedies) + view.hidden, "place")
    parts: list[RenderableType] = [Text(f"Remedies for {view.application}: {places} to change", style="bold")]
    parts += all_fixed(view.everything, scale, view.estimator, view.without_equal_bytes)
    if view.unknown_lines:
        parts.append(paragraph(view.unknown_lines))
    told: dict[tuple[object, ...], int] = {}
    for remedy in view.remedies:
        parts += _remedy(remedy, _instructions(remedy, told), scale, view.estimator, view.results)
    if not view.remedies and not view.hidden:
        parts.append(paragraph(view.nothing))
    if view.hidden:
        parts.append(Text())
        parts.append(paragraph(hidden_rows(view.hidden, "place", view.estimator)))
    parts += costly_waits(view.costly_waits, scale)
    if view.remedies:
        first = view.remedies[0].where.site
        commands = [(command(f"site {first}", view.results), "the first one with its whole stack")]
        if any(remedy.automatic for remedy in view.remedies):
            automatic = command("apply-remedy --all", view.results)
            commands.append((automatic, "apply what can be automated, and measure what it saves"))
        commands.append((command("remedies --sarif FILE", view.results), "for editors and code review"))
        parts += [heading("Next"), following(*commands)]
    return Group(*parts)


def _instructions(remedy: RemedyView, told: dict[tuple[object, ...], int]) -> list[RenderableType]:
    """Return what to do and where. Calls of one line, reached by several call stacks, often share both: `told` holds
    the numbers of remedies that said it before.
    """
    same_steps = told.setdefault(tuple(remedy.steps), remedy.number)
    lines = dict.fromkeys(
        (place.role, place.where.call, place.where.file, place.where.place) for place in remedy.places
    )
    same_places = told.setdefault((*remedy.steps, *lines), remedy.number)
    if same_places != remedy.number:
        return [bullet(f"The steps and places are those of {same_places}.")]
    steps = remedy.steps if same_steps == remedy.number else [f"The steps are those of {same_steps}."]
    parts = [bullet(step) for step in steps]
    for description, source in dict.fromkeys((_describe(place), place.source) for place in remedy.places):
        parts.append(paragraph(description))
        if source:
            parts.append(paragraph(source, indent=2 * INDENT, style="cyan"))
    return parts


def _remedy(
    remedy: RemedyView, instructions: Sequence[RenderableType], scale: Scale, estimator: Estimator, results: str
) -> list[RenderableType]:
    saving = remedy.saving
    saved = f"saves {scale.describe(saving, estimator)} by itself"
    if estimator == "replay" and saving.low_s is not None and saving.high_s is not None and not saving.at_most:
        low, high = scale.seconds(saving.low_s), scale.seconds(saving.high_s)
        saved += f", at least {low}, at most {high}" if low != high else ""
    where = f"{remedy.where.call} at {remedy.where.place}{remedy.reached} (site {remedy.where.site})"
    parts: list[RenderableType] = [
        heading(f"{remedy.number}. {where}: {remedy.kind}"),
        paragraph(f"{saved}; {count(remedy.occurrences)} of {count(remedy.of)} calls are affected"),
    ]
    parts += instructions
    parts += [paragraph(f"keep the wait: {kept.wait}") for kept in remedy.keep if kept.site != remedy.where.site]
    if remedy.automatic:
        options = " ".join(remedy.automatic)
        applied = command(f"apply-remedy {options} --site {remedy.where.site}", results)
        if len(applied) > LONGEST_COMMAND:
            parts += [paragraph("automatically:"), typed(f"  {applied}")]
        else:
            parts.append(paragraph(f"automatically: {applied}"))
    elif remedy.not_automatic:
        parts.append(paragraph(f"not automatically: {remedy.not_automatic}"))
    calls = [f"{_shortened(frame.function)} {frame.place}" for frame in _reached_by(remedy)]
    if len(calls) > INNER_FRAMES + OUTER_FRAMES:
        calls[INNER_FRAMES:-OUTER_FRAMES] = ["..."]
    if calls:
        parts.append(paragraph(f"reached by: {' < '.join(calls)}"))
    return parts


def _shortened(name: str) -> str:
    return shorten(name, LONGEST_NAME)


def _describe(place: RemedyPlace) -> str:
    """Return the place in one line. Allocations of one line reached by several call paths are listed once."""
    caller = f" in {_shortened(place.where.caller)}" if place.where.caller else ""
    return f"{place.role}{_what(place)} {place.where.place}{caller}"


def _what(place: RemedyPlace) -> str:
    """Return the memory by its name, and how host memory is allocated."""
    name = f" `{place.buffer}`" if place.buffer else ""
    return f"{name}:" if place.role in ("call", OWN_LINE) else f"{name}: {place.where.call} at"


def _reached_by(remedy: RemedyView) -> list[StackFrame]:
    """Return the frames around the call's line, outwards to `main`."""
    lines = [frame.place for frame in remedy.stack]
    first = lines.index(remedy.where.place) + 1 if remedy.where.place in lines else 0
    return [frame for frame in remedy.stack[first:] if frame.function and not starts_a_thread(frame.function)]
