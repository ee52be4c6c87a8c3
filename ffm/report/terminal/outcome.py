"""The results of `ffm apply-remedy` as lines for a terminal."""

from __future__ import annotations

import textwrap
from collections.abc import Iterator

from ffm.report.commands import typed
from ffm.report.numbers import size
from ffm.report.remedies.outcome import FALLBACKS, MEMORY, REMOVED, Found, Outcome, SiteCount

NO_SAVING = (
    "  This cannot be told from 0: runs of the same version differ by as much. More runs (--runs), on a quieter "
    "machine, tell more."
)
"""Where runs differ so much that they hide a saving."""

SHOWN = 5
"""How many of the sites that are left unchanged the screen shows."""


def lines(outcome: Outcome, width: int = 80) -> Iterator[str]:
    """Yield the lines that show the outcome on a terminal of the given width."""
    for line in _unwrapped(outcome):
        yield from textwrap.wrap(line, width, subsequent_indent="    ", break_long_words=False) or [""]


def _unwrapped(outcome: Outcome) -> Iterator[str]:
    yield f"{outcome.application}: {typed(outcome.command, outcome.stdin)}"
    yield f"  {outcome.runs} runs each, in turn; medians" if outcome.runs > 1 else "  one run each"
    yield ""
    yield f"  uncorrected {outcome.bare_s:9.3f} s"
    yield f"  corrected   {outcome.corrected_s:9.3f} s"
    yield f"  saved       {outcome.saving_s:9.3f} s  {outcome.saving_percent:.1f} % of the run{_measured(outcome)}"
    if doubt := _doubt(outcome):
        yield doubt
    if outcome.twin_saving_s is not None:
        share = 100 * outcome.twin_saving_s / outcome.bare_s
        yield f"  by hand     {outcome.twin_saving_s:9.3f} s  {share:.1f} % of the run, saved by the version named"
    estimate = _interval(outcome.estimate_low_s, outcome.estimate_high_s)
    yield f"  estimated   {outcome.estimate_s:9.3f} s  by {outcome.estimator}{estimate}"
    expected = _interval(outcome.expected.low_s, outcome.expected.high_s)
    yield f"  expected    {outcome.expected.seconds:9.3f} s  less what correcting costs{expected}"
    if outcome.ratio is not None:
        yield f"  ratio       {outcome.ratio:9.2f}    saved / estimated"
    yield ""
    yield "Remedies               call sites      calls    waited"
    for count in outcome.remedies:
        sites = f"{count.remedied} of {count.planned}"
        yield f"  {count.remedy:<18} {sites:>12} {count.corrected:>10,} {count.waited:>9,}"
    yield ""
    yield from _compared(outcome.sites)
    yield f"Removed: {outcome.synchronizations_removed:,} synchronization operations"
    for name, number in outcome.removed.items():
        yield f"  {number:>10,}  {REMOVED[name]}"
    if outcome.fallbacks:
        yield "Waited anyway, to be safe"
        for name, number in outcome.fallbacks.items():
            yield f"  {number:>10,}  {FALLBACKS[name]}"
    if outcome.memory:
        yield "Memory"
        for name, number in outcome.memory.items():
            yield f"  {size(number):>10}  {MEMORY[name]}"
    if outcome.left:
        yield "Left unchanged"
    for site in outcome.left[:SHOWN]:
        yield f"  {site.place} (site {site.site}, {site.expected_s:.3f} s estimated): {site.why}."
    if len(outcome.left) > SHOWN:
        yield f"  and {len(outcome.left) - SHOWN} more call sites (--json lists them)"
    for note in outcome.notes:
        yield f"Note: {note}"
    if not outcome.differences:
        yield "The corrected program ended like the original and wrote the same output."


def _compared(sites: list[SiteCount]) -> Iterator[str]:
    """Yield what comparing corrected with original calls found, during the last run."""
    mine = [site for site in sites if site.remedies and site.calls]
    numbers = {found: [site for site in mine if site.found is found] for found in Found}
    compared = len(mine) - len(numbers[Found.NOT_COMPARED])
    if not compared:
        return
    parts = [f"{len(numbers[found])} {found}" for found in (Found.HELPED, Found.NO_DIFFERENCE, Found.WENT_BACK)]
    yield (
        f"Compared with the original calls while the program ran: {compared} of {len(mine)} call sites; "
        f"{', '.join(part for part in parts if not part.startswith('0 '))}"
    )
    for site in numbers[Found.WENT_BACK][:SHOWN]:
        lost = f"correcting it cost {100 * (site.slower or 0):.0f} % of the time from call to call"
        yield f"  {site.place} (site {site.site}) went back: {lost}"
    yield ""


def _measured(outcome: Outcome) -> str:
    found = outcome.saving_interval
    if found is None:
        return ""
    return f", from {found.low:.3f} to {found.high:.3f} s ({100 * found.confidence:.0f} % sure)"


def _doubt(outcome: Outcome) -> str:
    """Return why the saving cannot be distinguished from 0; empty if it can."""
    if outcome.saving_interval is None:
        return "  One run each does not tell whether anything was saved: ask for more with --runs."
    if outcome.saving_interval.excludes_zero:
        return ""
    return NO_SAVING


def _interval(low_s: float | None, high_s: float | None) -> str:
    return "" if low_s is None or high_s is None else f", from {low_s:.3f} to {high_s:.3f} s"
