"""The screen of `ffm compare`."""

from __future__ import annotations

import shlex
from collections.abc import Iterator
from statistics import median

from ffm.report.compare import CompareView, SiteChange
from ffm.report.numbers import Scale, percent, plural


def compare_lines(view: CompareView) -> Iterator[str]:
    """Yield the lines: the run's time, the estimate next to it, and the sites."""
    scale = Scale(max(*view.old_s, *view.new_s))
    yield f"before: {view.old}, {_times(view.old_s, scale)}"
    yield f"after:  {view.new}, {_times(view.new_s, scale)}"
    if view.arguments:
        old, new = (shlex.join(words) or "none" for words in view.arguments)
        yield f"the programs had different arguments and may have done different work: {old} before, {new} after"
    if view.inputs:
        old, new = (file or "nothing" for file in view.inputs)
        yield f"the programs read different input and may have done different work: {old} before, {new} after"
    yield summary(view)
    if view.estimated is not None:
        promise = view.estimated
        between = (
            ""
            if promise.low_s is None or promise.high_s is None
            else f", between {scale.seconds(promise.low_s)} and {scale.seconds(promise.high_s)}"
        )
        yield f"estimated before for the sites that are gone: {scale.seconds(promise.seconds)}{between}"
    for title, sites in (("gone", view.gone), ("new", view.come), ("changed", view.changed)):
        doing = "that waits or transfers" if len(sites) == 1 else "that wait or transfer"
        yield f"{title}: {plural(len(sites), 'site')} {'with problems' if view.proved else doing}"
        for one in sites:
            yield f"  {describe(one, scale)}"
    yield f"{plural(view.same, 'site')} with as many {'problems' if view.proved else 'such calls'} as before"


def _times(seconds: list[float], scale: Scale) -> str:
    if len(seconds) == 1:
        return scale.seconds(seconds[0])
    return f"{scale.seconds(min(seconds))} to {scale.seconds(max(seconds))} ({len(seconds)} measurements)"


def summary(view: CompareView) -> str:
    """Return how much less or more time the run takes."""
    scale = Scale(max(*view.old_s, *view.new_s))
    before = median(view.old_s)
    share = f" ({percent(100 * abs(view.saved_s) / before)})" if before > 0 else ""
    amount = f"{scale.seconds(abs(view.saved_s))} {'less' if view.saved_s >= 0 else 'more'}"
    text = f"the run takes {amount}{share}"
    if view.interval is None:
        return f"{text}; one measurement of each does not show how much runs vary: add more by --more-old, --more-new"
    low, high = scale.seconds(view.interval.low_s), scale.seconds(view.interval.high_s)
    return f"{text}; it saves between {low} and {high} with {percent(100 * view.interval.confidence)} confidence"


def describe(change: SiteChange, scale: Scale) -> str:
    """Return what has changed at a site."""
    counts = f"{change.old_count:,} before, {change.new_count:,} after"
    seconds = f"{scale.seconds(change.old_seconds)} before, {scale.seconds(change.new_seconds)} after"
    return f"{change.place} {change.call}: {counts}; alone worth {seconds}"
