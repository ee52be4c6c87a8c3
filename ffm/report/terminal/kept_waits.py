"""Sections of waits that are not problems but cost time, for the screens of `ffm report` and `ffm remedies`."""

from __future__ import annotations

from rich.console import RenderableType

from ffm.report.kept.costly_waits import CostlyWaits
from ffm.report.numbers import Scale, hidden_rows
from ffm.report.terminal.layout import bullet, heading, paragraph


def costly_waits(waits: CostlyWaits, scale: Scale, most: int | None = None) -> list[RenderableType]:
    """Lay out each kind of such waits; `most` limits how many of each are shown.

    Where all of a kind are hidden, so is its section: they are no problems.
    """
    parts: list[RenderableType] = []
    for section in waits.sections():
        sentences = [one.sentence(scale) for one in section.waits]
        parts += waits_section(section.heading, sentences, section.advice, section.hidden, most)
    return parts


def waits_section(title: str, waits: list[str], advice: str, hidden: int, most: int | None) -> list[RenderableType]:
    """Lay out waits, with their heading and advice; `most` limits how many are shown, and `hidden` more cost little."""
    if not waits:
        return []
    parts: list[RenderableType] = [heading(title), *map(bullet, waits[:most])]
    if len(waits[:most]) < len(waits):
        parts.append(paragraph(f"and {len(waits) - len(waits[:most])} more"))
    if hidden:
        parts.append(paragraph(hidden_rows(hidden, "place", "replay")))
    return [*parts, paragraph(advice)]
