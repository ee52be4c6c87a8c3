"""Pictures of where a run's time goes: rows of bars, whose lengths are percent of the space that bars have."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass

from ffm.report.numbers import Estimator, Scale, count, percent
from ffm.report.unproved import UnprovedWaits
from ffm.results.documents.analysis import Analysis
from ffm.results.documents.benefit import Benefit
from ffm.results.documents.site import Site
from ffm.results.places import place

BARS = 100.0
"""Percent of the space for bars that the longest one fills."""
SMALLEST_SHARE = 0.05
"""Percent of the run below which a call has no row: its bar would be too thin to see."""
AT_MOST = "saves at most, if it proves unnecessary"
MOST_ROWS = 400
"""Longer sequences are drawn up to this row; the table below them is complete."""


@dataclass(frozen=True, slots=True)
class Bar:
    """A rectangle. `kind` selects its colour: `cpu`, `call`, `wait`, `problem` or `saving`.

    `x` and `width` are percent of the space for bars, `y` and `height` pixels in the row.
    """

    x: float
    y: int
    width: float
    height: int
    kind: str
    title: str


@dataclass(frozen=True, slots=True)
class Line:
    """One row: a label, its bars, and their values as numbers."""

    label: str
    site: int | None
    bars: list[Bar]
    value: str


@dataclass(frozen=True, slots=True)
class Picture:
    """Rows below each other. `omitted` counts those that were not drawn."""

    lines: list[Line]
    omitted: int = 0


@dataclass(frozen=True, slots=True)
class Share:
    """One part of a bar, in seconds."""

    seconds: float
    kind: str
    words: str


@dataclass(frozen=True, slots=True)
class _Row:
    label: str
    site: int | None
    shares: list[Share]
    saved_s: float
    value: str
    saved: str = "could be saved"
    """What the thin bar below the others stands for."""


def run_picture(analysis: Analysis, estimator: Estimator) -> Picture:
    """Draw the whole run: the CPU's own work, recorded calls, waits, and what fixing everything could save of it.

    If nothing is proved about a run, no saving is shown: the most that each site saves does not add up.

    Several threads can wait at the same time. If their calls add up to more than the wall time, the CPU's own work is
    left out and the bar ends at their sum.
    """
    scale = Scale(analysis.wall_s)
    calls = sum(site.total_s for site in analysis.sites)
    waiting = sum(site.wait_s for site in analysis.sites)
    shares = [
        Share(max(analysis.wall_s - calls, 0.0), "cpu", "CPU work outside the driver"),
        *_call_shares(analysis.sites, proves=analysis.proves),
    ]
    if analysis.everything is None:
        saved = sum(_seconds(sequence.benefit, estimator) for sequence in analysis.sequences)
    else:
        saved = _seconds(analysis.everything, estimator)
    value = f"fixing all saves {scale.seconds(saved)} ({percent(scale.share(saved))})"
    if not analysis.proves:
        several = calls > analysis.wall_s  # a share of the run would say nothing, and may exceed it
        value = f"{scale.seconds(waiting)} waiting ({'all threads' if several else percent(scale.share(waiting))})"
    return _draw([_Row("whole run", None, shares, saved, value)], scale)


def calls_picture(analysis: Analysis, estimator: Estimator) -> Picture:
    """Draw each CUDA call over all its sites, longest first: what it took, and what its fold could save.

    Calls below `SMALLEST_SHARE` of the run would be rows without a visible bar.
    """
    scale = Scale(analysis.wall_s)
    sites: dict[str, list[Site]] = defaultdict(list)
    for site in analysis.sites:
        sites[site.call].append(site)
    total = {call: sum(site.total_s for site in made) for call, made in sites.items()}
    saved = {fold.name: _seconds(fold.benefit, estimator) for fold in analysis.folds}
    rows = [
        _Row(
            call,
            None,
            _call_shares(sites[call], proves=analysis.proves),
            saved.get(call, 0.0),
            _value(scale, total[call], saved.get(call, 0.0)),
        )
        for call in sorted(total, key=lambda name: -total[name])
        if scale.share(total[call]) >= SMALLEST_SHARE
    ]
    return _draw(rows, scale)


def unproved_picture(waits: list[UnprovedWaits], scale: Scale) -> Picture:
    """Draw each site that nothing is proved of: what it took, and what doing without its waits saves at most."""
    rows = [
        _Row(
            f"{one.where.call} {one.where.place}",
            one.where.site,
            _shares(one.total_s, {"wait": one.waited_s}, proves=False),
            one.high_s,
            f"{scale.seconds(one.total_s)}, saves at most {scale.seconds(one.high_s)}",
            AT_MOST,
        )
        for one in waits
    ]
    return _draw(rows, scale)


def sequence_picture(analysis: Analysis, number: int, estimator: Estimator) -> Picture:
    """Draw each operation of a sequence: what its site took in the run, and what fixing it alone would save."""
    scale = Scale(analysis.wall_s)
    rows = []
    for position, operation in enumerate(analysis.sequences[number - 1].operations, 1):
        site, where = analysis.sites[operation.site], place(analysis, operation.site)
        saved = _seconds(site.benefit, estimator)
        rows.append(
            _Row(
                f"{count(position)}. {where.call} {where.place}",
                where.site,
                _call_shares([site], proves=analysis.proves),
                saved,
                _value(scale, site.total_s, saved, " alone"),
            )
        )
    return _draw(rows, scale)


def _value(scale: Scale, total_s: float, saved_s: float, how: str = "") -> str:
    saved = scale.seconds(saved_s)
    nothing = saved == scale.seconds(0.0)
    return scale.seconds(total_s) if nothing else f"{scale.seconds(total_s)}, saves {saved}{how}"


def _call_shares(sites: Sequence[Site], *, proves: bool) -> list[Share]:
    """Return what the calls of sites took: the calls themselves, and their waits, of sites with a problem apart."""
    waits = {"wait": 0.0, "problem": 0.0}
    for site in sites:
        waits["problem" if site.problem_count else "wait"] += site.wait_s
    return _shares(sum(site.total_s for site in sites), waits, proves=proves)


def _shares(total_s: float, waits: dict[str, float], *, proves: bool) -> list[Share]:
    words = {
        "wait": "waiting for the GPU where needed" if proves else "waiting",
        "problem": "waiting for the GPU at sites with a problem",
    }
    called = Share(max(total_s - sum(waits.values()), 0.0), "call", "in traced calls, not waiting")
    return [called, *(Share(seconds, kind, words[kind]) for kind, seconds in waits.items())]


def _seconds(benefit: Benefit, estimator: Estimator) -> float:
    return Scale(0.0).saving(benefit).seconds(estimator)


def _draw(rows: list[_Row], scale: Scale) -> Picture:
    """Place the rows below each other; the longest bar fills the space for bars."""
    shown = rows[:MOST_ROWS]
    longest = max((max(sum(s.seconds for s in row.shares), row.saved_s) for row in shown), default=0.0)
    unit = BARS / longest if longest > 0 else 0.0
    lines = []
    for row in shown:
        x, bars = 0.0, []
        for share in row.shares:
            width = share.seconds * unit
            if width > 0:
                title = f"{share.words}: {scale.seconds(share.seconds)}"
                bars.append(Bar(x, 5, width, 12, share.kind, title))
            x += width
        if row.saved_s > 0:
            title = f"{row.saved}: {scale.seconds(row.saved_s)}"
            bars.append(Bar(0.0, 19, row.saved_s * unit, 7, "saving", title))
        lines.append(Line(row.label, row.site, bars, row.value))
    return Picture(lines, len(rows) - len(shown))
