"""The screen of `ffm site`."""

from __future__ import annotations

from rich.console import Group, RenderableType
from rich.text import Text

from ffm.report.names import shorten
from ffm.report.numbers import Scale, count, percent, plural, size
from ffm.report.places import StackFrame
from ffm.report.site import SiteView
from ffm.report.terminal.findings import finding_text
from ffm.report.terminal.layout import Column, bullet, following, heading, paragraph, recoverable, table


def render_site(view: SiteView, width: int = 80) -> RenderableType:
    """A site for a terminal of the given width: times, verdicts and the whole stack."""
    scale = Scale(view.wall_s)
    where = view.where
    parts: list[RenderableType] = [
        Text(f"Site {where.site} of {view.application}: {where.call} at {where.place}", style="bold"),
        recoverable("Time recoverable", scale, view.saving, view.estimator),
        paragraph(f"in {shorten(where.caller or 'an unknown function', width - 6)}"),
        paragraph(f"{view.kind} by {view.driver_function or 'a driver function that was not recorded'}"),
        Text(),
        _times(view, scale, width),
        heading("Why"),
    ]
    if view.findings:
        parts += [bullet(finding_text(finding)) for finding in view.findings]
    else:
        parts.append(paragraph("No problem was found at this site."))
    if view.without is not None:
        parts += [
            paragraph(
                "The program needs these waits as it is. If it read what they protect later, or ordered streams by "
                "events, doing without them would save:"
            ),
            bullet(_without(scale, view)),
        ]
    if view.download is not None:
        parts += [heading("What becomes of the downloads"), paragraph(view.download.text)]
    if view.hint:
        parts.append(paragraph(view.hint))
    parts.append(heading("Stack, innermost first"))
    parts += [_frame(frame, width) for frame in view.stack]
    if view.sequences:
        parts.append(heading("Next"))
        parts.append(following(*((f"ffm sequence {n}", "a sequence with this call") for n in view.sequences[:3])))
    return Group(*parts)


def _without(scale: Scale, view: SiteView) -> str:
    saving = view.without
    if saving is None:
        return ""
    text = f"{scale.seconds(saving.seconds(view.estimator))} ({percent(saving.percent(view.estimator))} of the run)"
    if saving.low_s is None or saving.high_s is None:
        return text
    return f"{text}, at least {scale.seconds(saving.low_s)}, at most {scale.seconds(saving.high_s)}"


def _times(view: SiteView, scale: Scale, width: int) -> RenderableType:
    def line(what: str, seconds: float) -> list[str]:
        return [what, scale.seconds(seconds), percent(scale.share(seconds))]

    rows = [
        line("inside the call", view.total_s),
        line("of it waiting for the GPU", view.wait_s),
        line("from its end to the next call", view.gap_s),
    ]
    columns = [
        Column(plural(view.count, "call") + f", {count(view.problem_count)} with a problem"),
        Column("sum", right=True),
        Column("of run", right=True),
    ]
    if view.bytes:
        rows.append(["bytes moved", size(view.bytes), ""])
    return table(columns, rows, width)


def _frame(frame: StackFrame, width: int) -> RenderableType:
    name = frame.function or "unknown function"
    tail = " (inlined)" if frame.inlined else ""
    room = width - len(frame.place) - len(tail) - 6
    if room >= len(name) or room >= 24:
        return Text(f"  {shorten(name, room)} at {frame.place}{tail}")
    return Text(f"  {shorten(name, width - 2)}\n    at {frame.place}{tail}")
