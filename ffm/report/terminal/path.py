"""The screens of `ffm path`."""

from __future__ import annotations

from rich.console import Group, RenderableType
from rich.text import Text

from ffm.report.commands import command
from ffm.report.numbers import Scale, count, percent, plural
from ffm.report.terminal.layout import Column, bullet, following, heading, paragraph, run_title, table
from ffm.report.waiting.changes import ChangeView, Gain
from ffm.report.waiting.path import PathView
from ffm.report.waiting.region import RegionBounds, RegionView
from ffm.report.waiting.rows import GpuRow, RegionRow
from ffm.report.waiting.shares import MEANINGS, Share

LISTED_CHANGES = 8
"""Changes that the screen of `--if` names."""


def render_path(view: PathView, width: int = 80) -> RenderableType:
    """Lay out the critical path of a run."""
    scale = Scale(view.wall_s)
    title = f"{view.application}: {scale.seconds(view.wall_s)} of wall time, {scale.seconds(view.length_s)} traced"
    parts: list[RenderableType] = [Text(title, style="bold")]
    if view.saved_s is not None:
        parts[0] = Text(f"{view.application} after all fixes: {scale.seconds(view.wall_s)}", style="bold")
        parts.append(paragraph(f"The fixes of `ffm remedies` together save {scale.seconds(view.saved_s)}, by replay."))
    elif view.origin not in ("ffm", "quick"):
        times = ", which recorded the GPU's times" if view.gpu else ""
        parts.append(paragraph(f"Imported from {view.origin}{times}."))
    elif view.agreed_percent is not None:
        parts.append(
            paragraph(
                f"{percent(view.agreed_percent)} of the critical path is the same whatever is inferred about the GPU."
            )
        )
    parts += [heading("Critical path"), _shares(view.shares, scale, width)]
    parts += _regions(view, scale, width)
    parts += _blame(view, scale, width)
    if view.patterns:
        parts.append(heading("Patterns of waiting"))
        columns = [Column("seconds", right=True), Column("count", right=True), Column("pattern")]
        rows = [[scale.seconds(row.seconds), count(row.count), row.name] for row in view.patterns]
        parts.append(table(columns, rows, width))
        parts += [bullet(f"{row.name}: {row.meaning}") for row in view.patterns]
    if view.gpu:
        parts.append(heading("The GPU, between its first and its last work"))
        processes = len({row.process for row in view.gpu})
        parts += [bullet(_gpu(row, scale, processes, len(view.gpu))) for row in view.gpu]
    if view.notes:
        parts += [heading("Notes"), *(bullet(note) for note in view.notes)]
    if view.regions and view.saved_s is None:
        parts += [
            heading("Next"),
            following(
                (command("path 1", view.results), "one region, by its number or name"),
                (command("path --if 1=2x", view.results), "what the run would save if it were twice as fast"),
            ),
        ]
    return Group(*parts)


def _shares(shares: list[Share], scale: Scale, width: int) -> RenderableType:
    columns = [
        Column("seconds", right=True),
        Column("of path", right=True),
        Column("kind", style="bold"),
        Column("meaning", flexible=True, wrapped=True),
    ]
    rows = [
        [scale.seconds(share.seconds), percent(share.percent), share.name, MEANINGS[share.name]]
        for share in shares
        if share.seconds > 0
    ]
    return table(columns, rows, width)


def _regions(view: PathView, scale: Scale, width: int) -> list[RenderableType]:
    title = heading("Regions")
    title.append("  by their seconds on the path", style="not bold")
    parts: list[RenderableType] = [title]
    tried = any(row.gone_s is not None for row in view.regions)
    columns = [
        Column("on path", right=True, style="bold"),
        Column("of path", right=True),
        *([Column("10 % less", right=True), Column("at most", right=True)] if tried else []),
        Column("#", right=True),
        Column("region", flexible=True, wrapped=True),
    ]
    rows = [
        [
            scale.seconds(row.path_s),
            percent(row.path_percent),
            *([_tried(scale, row.tenth_s), _tried(scale, row.gone_s)] if tried else []),
            str(row.number),
            region_name(row),
        ]
        for row in view.regions
    ]
    parts.append(table(columns, rows, width))
    if view.hidden:
        parts.append(paragraph(f"{plural(view.hidden, 'region')} with less on the path hidden (see --all)"))
    if tried:
        parts.append(
            paragraph(
                "10 % less, at most: what the run would save if the region took 10 % less time, and if it were gone, "
                "by replay; these do not add up"
            )
        )
    return parts


def _blame(view: PathView, scale: Scale, width: int) -> list[RenderableType]:
    """Show who is most to blame for waiting."""
    parts: list[RenderableType] = []
    columns = [Column("seconds", right=True), Column("#", right=True), Column("region", flexible=True, wrapped=True)]
    for title, listed in (
        ("The CPU waited for", [(row, row.blamed_s) for row in view.waited_for]),
        ("The GPU was idle during", [(row, row.blamed_s) for row in view.idle_for]),
        ("Threads waited for others during", [(row, row.threads_s) for row in view.threads_for]),
    ):
        if listed:
            cells = [[scale.seconds(seconds), str(row.number), region_name(row)] for row, seconds in listed]
            parts += [heading(title), table(columns, cells, width)]
    return parts


def region_name(row: RegionRow) -> str:
    """Return `kernel solve als.cu:120`."""
    return f"{row.kind} {row.name} {row.place}".rstrip()


def _gpu(row: GpuRow, scale: Scale, processes: int, rows: int) -> str:
    def shown(seconds: float) -> str:
        share = 100 * seconds / row.lasting_s if row.lasting_s > 0 else 0.0
        return f"{scale.seconds(seconds)} ({percent(share)})"

    names = [f"process {row.process}"] if processes > 1 else []
    names += [f"device {row.device}"] if row.device is not None and rows > 1 else []
    whose = f"{', '.join(names)}: " if names else ""
    return (
        f"{whose}idle for {shown(row.idle_s)} of {scale.seconds(row.lasting_s)}; without a kernel for "
        f"{shown(row.compute_idle_s)}, of this {scale.seconds(row.unhidden_s)} in transfers that no kernel hid; "
        f"{scale.seconds(row.copy_overlap_s)} of transfers beside kernels"
    )


def render_region(view: RegionView, width: int = 80) -> RenderableType:
    """Lay out one region."""
    scale, row = Scale(view.wall_s), view.region
    parts: list[RenderableType] = [
        Text(f"Region {row.number} of {view.application}: {region_name(row)}", style="bold"),
        paragraph(
            f"{plural(row.count, 'time')}, {scale.seconds(row.total_s)} in all; on the critical path "
            f"{scale.seconds(row.path_s)} ({percent(row.path_percent)} of it)"
        ),
        *([paragraph(_blamed(row, scale))] if row.blamed_s > 0 else []),
        *([paragraph(f"other threads waited {scale.seconds(row.threads_s)} for it")] if row.threads_s > 0 else []),
        *(bullet(f"{part.name}: {scale.seconds(part.seconds)} ({percent(part.percent)})") for part in view.parts),
        *_lines(view, scale),
        heading("If it were faster, the run would save"),
        *(bullet(f"{_factor(gain)}: {_gain(gain, scale)}") for gain in view.gains),
        *_bounds(view.bounds, scale),
    ]
    sites = [(where.command, "a call site of it") for where in view.sites[:3]]
    parts += [heading("Next"), following((view.command, "any other factor"), *sites)]
    return Group(*parts)


def _lines(view: RegionView, scale: Scale) -> list[RenderableType]:
    """Say in which lines the CPU worked."""
    lines = [
        f"{line.file}:{line.line}: {scale.seconds(line.seconds)} ({percent(line.percent)})"
        for line in view.lines
        if line.line
    ]
    return [heading("Its lines, by samples of the CPU"), *map(bullet, lines)] if lines else []


def _bounds(bounds: RegionBounds, scale: Scale) -> list[RenderableType]:
    """Say what the region can save, by the waits that it causes."""
    lines = []
    if bounds.faster_s > 0:
        lines.append(f"if it is faster, until the shortest wait for it is gone: {scale.seconds(bounds.faster_s)}")
    if bounds.even_s > 0:
        lines.append(f"if the threads that wait for it took an equal share of it: {scale.seconds(bounds.even_s)}")
    if bounds.passed_on_s > 0:
        lines.append(f"waiting that it causes through other waits: {scale.seconds(bounds.passed_on_s)}")
    return [heading("By the waits that it causes, each alone"), *map(bullet, lines)] if lines else []


def _blamed(row: RegionRow, scale: Scale) -> str:
    if row.kind in ("kernel", "transfer"):
        return f"the CPU waited {scale.seconds(row.blamed_s)} for it"
    return f"the GPU was idle for {scale.seconds(row.blamed_s)} meanwhile"


def _factor(gain: Gain) -> str:
    if gain.factor is None:
        return "gone"
    return "10 % faster" if gain.factor < 1.2 else f"{gain.factor:g}x as fast"


def _gain(gain: Gain, scale: Scale) -> str:
    between = f"{scale.seconds(gain.low_s)} to {scale.seconds(gain.high_s)}"
    return f"{scale.seconds(gain.seconds)} ({percent(scale.share(gain.seconds))}), {between}"


def render_change(view: ChangeView, width: int = 80) -> RenderableType:
    """Lay out what changes would save."""
    scale = Scale(view.wall_s)
    parts: list[RenderableType] = [run_title(view.application, scale)]
    shown = sorted(view.changes, key=lambda change: -change.region.path_s)
    for change in shown[:LISTED_CHANGES]:
        how = "gone" if change.factor is None else f"{change.factor:g}x as fast"
        row = change.region
        on_path = f"{scale.seconds(row.total_s)}, {scale.seconds(row.path_s)} on the critical path"
        parts.append(bullet(f"{region_name(row)} {how} ({on_path})"))
    if len(shown) > LISTED_CHANGES:
        parts.append(paragraph(f"and {plural(len(shown) - LISTED_CHANGES, 'region')} with less on the path"))
    saved = max(view.wall_s - view.gain.seconds, 0.0)
    parts += [
        heading(f"The run would save {_gain(view.gain, scale)}"),
        paragraph(f"It would take {scale.seconds(saved)}."),
        paragraph(f"The changes take {scale.seconds(view.path_s)} away from the path as it is."),
    ]
    return Group(*parts)


def _tried(scale: Scale, seconds: float | None) -> str:
    """Return what a faster region would save, if that was replayed."""
    return "-" if seconds is None else scale.seconds(seconds)
