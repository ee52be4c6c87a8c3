"""The screen of `ffm site`."""

from __future__ import annotations

from rich.console import Group, RenderableType
from rich.text import Text

from ffm.report.commands import command
from ffm.report.names import shorten
from ffm.report.numbers import Scale, count, percent, plural, size
from ffm.report.site import SiteView, Without
from ffm.report.terminal.findings import finding_text
from ffm.report.terminal.layout import Column, bullet, following, heading, paragraph, table, whole_saving
from ffm.results.places import StackFrame

NEEDED = (
    "The program needs these waits as it is written. If it read what they protect later, or ordered streams by events, "
    "removing them would save:"
)
SOME_NEEDED = "The program needs some of these waits as it is written. Removing all of them would save:"
NOT_MEASURED = "this site was left out, so it is not known whether the program needs it."
UNPROVED = "If they prove unnecessary, doing without all of them saves:"


def render_site(view: SiteView, width: int = 80) -> RenderableType:
    """Lay out a site for a terminal of the given width: times, verdicts and the whole stack."""
    scale = Scale(view.wall_s)
    where = view.where
    title = Text(f"Site {where.site} of {view.application}: {where.call} at {where.place}", style="bold")
    within = paragraph(f"in {shorten(where.caller or 'an unknown function', width - 6)}")
    if not view.count:
        outside = paragraph("Not a driver call: host memory of transfers is allocated or freed here.")
        return Group(title, within, outside, *_stack(view, width))
    parts: list[RenderableType] = [
        title,
        *([] if view.unproved or view.not_measured else [whole_saving("Saving", scale, view.saving, view.estimator)]),
        within,
        paragraph(_called(view)),
        Text(),
        _times(view, scale, width),
        heading("Why"),
    ]
    if view.findings:
        parts += [bullet(finding_text(finding)) for finding in view.findings]
    elif view.not_measured:
        parts.append(paragraph(f"Not measured: {NOT_MEASURED}"))
    elif view.unproved and view.kind == "other" and view.wait_s > 0:
        parts.append(paragraph(f"It waits for other threads or processes: `{command('path', view.results)}`."))
    elif view.unproved and (view.without is not None or view.wait_s > 0):
        parts.append(paragraph("One trace does not show whether the program needs these waits and transfers."))
    elif view.unproved:
        parts.append(paragraph("The trace shows no wait here, so there is none to do without."))
    else:
        parts.append(paragraph("No problem was found at this site."))
    if view.without is not None:
        needed = SOME_NEEDED if view.problem_count else NEEDED
        parts += [paragraph(UNPROVED if view.unproved else needed), bullet(_without(scale, view.without))]
    if view.download is not None:
        parts += [heading("Use of the downloads"), paragraph(view.download.text)]
    if view.hint:
        parts.append(paragraph(view.hint))
    parts += _stack(view, width)
    commands = [
        (command(f"sequence {number}", view.results), "a sequence with this call") for number in view.sequences[:3]
    ]
    if view.problem_count:
        commands.append((command("remedies", view.results), f"what to change: look there for site {where.site}"))
    if commands:
        parts += [heading("Next"), following(*commands)]
    return Group(*parts)


def _called(view: SiteView) -> str:
    """`transfer by cuMemcpyHtoD_v2`."""
    if view.kind == "other" and view.unproved:
        return "a call that neither waits for a GPU nor gives it work"
    if view.driver_function == "private":
        return "a wait in a private call of the driver"
    return f"{view.kind} by {view.driver_function or 'a driver function that was not recorded'}"


def _stack(view: SiteView, width: int) -> list[RenderableType]:
    return [heading("Stack, innermost first"), *(_frame(frame, width) for frame in view.stack)]


def _without(scale: Scale, saving: Without) -> str:
    return (
        f"{scale.seconds(saving.seconds)} ({percent(saving.percent)} of the run), at least "
        f"{scale.seconds(saving.low_s)}, at most {scale.seconds(saving.high_s)}, by replay"
    )


def _times(view: SiteView, scale: Scale, width: int) -> RenderableType:
    def line(what: str, seconds: float) -> list[str]:
        return [what, scale.seconds(seconds), percent(scale.share(seconds))]

    rows = [
        line("inside the call", view.total_s),
        line("of it waiting" if view.unproved and view.without is None else "of it waiting for the GPU", view.wait_s),
        line("from its end to the next call", view.gap_s),
    ]
    columns = [
        Column(plural(view.count, "call") + ("" if view.unproved else f", {count(view.problem_count)} with a problem")),
        Column("sum", right=True),
        Column("of run", right=True),
    ]
    if view.bytes:
        rows.append([BYTES.get(view.kind, "bytes moved"), size(view.bytes), ""])
    return table(columns, rows, width)


BYTES = {"allocation": "bytes allocated", "free": "bytes freed"}
"""What the bytes of a call are, by its kind; otherwise they are moved."""


def _frame(frame: StackFrame, width: int) -> RenderableType:
    name = frame.function or "unknown function"
    tail = " (inlined)" if frame.inlined else ""
    room = width - len(frame.place) - len(tail) - 6
    if room >= len(name) or room >= 24:
        return Text(f"  {shorten(name, room)} at {frame.place}{tail}")
    return Text(f"  {shorten(name, width - 2)}\n    at {frame.place}{tail}")
