"""Sections of waits that are not problems but cost time, for the screens of `ffm report` and `ffm remedies`."""

from __future__ import annotations

from rich.console import RenderableType

from ffm.report import ordering, sharing, timing
from ffm.report.numbers import Scale, hidden_rows
from ffm.report.overview import Overview
from ffm.report.python import fetching, sending
from ffm.report.remedies.view import RemediesView
from ffm.report.terminal.layout import bullet, heading, paragraph


def costly_waits(view: Overview | RemediesView, scale: Scale, most: int | None = None) -> list[RenderableType]:
    """Lay out waits that only order streams, those for values and for uploads, those for timing, and those that another
    process may need; `most` limits how many of each are shown.

    Where all of a kind are hidden, so is its section: they are no problems.
    """
    ordered = [waits.sentence(scale) for waits in view.ordering]
    fetched = [waits.sentence(scale) for waits in view.fetching]
    sent = [waits.sentence(scale) for waits in view.sending]
    timed = [waits.sentence(scale) for waits in view.timing]
    shared = [waits.sentence(scale) for waits in view.sharing]
    return [
        *waits_section(ordering.HEADING, ordered, ordering.ADVICE, view.ordering_hidden, most),
        *waits_section(fetching.HEADING, fetched, fetching.advice(view.fetching), view.fetching_hidden, most),
        *waits_section(sending.HEADING, sent, sending.advice(view.sending), view.sending_hidden, most),
        *waits_section(timing.HEADING, timed, timing.ADVICE, view.timing_hidden, most),
        *waits_section(sharing.HEADING, shared, sharing.ADVICE, view.sharing_hidden, most),
    ]


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
