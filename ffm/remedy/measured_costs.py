"""What correcting cost in the runs that were corrected.

What a call costs depends on the machine, its driver and the program: how deep its stacks are, whether keeping an order
needs an event. The library notes how long corrected calls took (`native/correction/foundation/trials.h`), including
looking at their stacks. If each call of a unit was corrected, or left as it is for comparison, that is what the unit
cost. Other units made calls that waited after all, as they would have done uncorrected, or deliveries that waited for
the GPU: for these, only an upper limit is known.

Copies on the device in place of uploads take no time in the call, but later work waits for them as it would have waited
for the upload. So they count in addition to the calls, for the share of reused uploads that needed such a copy.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from statistics import median

from ffm.remedy.correct import Comparison
from ffm.remedy.layout import Counted
from ffm.remedy.plan_file import Planned, delivers_late
from ffm.remedy.worth import Costs


@dataclass(frozen=True, slots=True)
class Paid:
    """Seconds that correcting cost. Where the cost is not known, half of the most that it can be is likely."""

    likely_s: float
    most_s: float
    in_calls_s: float
    """The part of `likely_s` that the corrected calls took, and the device for them; the rest is for getting into the
    program.
    """


def paid(costs: Costs, comparison: Comparison) -> Paid:
    """Return what correcting the planned sites cost."""
    in_calls_s, most_s = 0.0, costs.rest_s
    copied = _share_copied(comparison)
    for unit in {site.unit for site in comparison.planned}:
        places = [place for place, site in enumerate(comparison.planned) if site.unit == unit]
        sites = [comparison.planned[place] for place in places]
        spent = [seconds for run in comparison.each_counted if (seconds := _spent_s(run, places, sites)) is not None]
        unit_most_s = sum(costs.calls_s.get(site.site, 0.0) for site in sites)
        device_s = copied * sum(costs.device_s.get(site.site, 0.0) for site in sites)
        in_calls_s += median(spent) + device_s if spent else unit_most_s / 2
        most_s += median(spent) + device_s if spent else unit_most_s
    return Paid(costs.rest_s / 2 + in_calls_s, most_s, in_calls_s)


def _share_copied(comparison: Comparison) -> float:
    """Return the share of reused uploads that were not there already, so that the device copied them."""
    counts = [process.values for run in comparison.each_counted for process in run]
    copied, nothing = (sum(count[name] for count in counts) for name in ("uploads_copied", "uploads_nothing"))
    return copied / max(copied + nothing, 1)


def _spent_s(processes: Sequence[Counted], places: Sequence[int], sites: Sequence[Planned]) -> float | None:
    """Return how long corrected calls of a unit took in a run; None if that contains what the program waits anyway."""
    tallies = [process.tallies[place] for process in processes for place in places]
    if any(delivers_late(site) for site in sites) or any(
        tally.waited or tally.corrected + tally.original < tally.calls for tally in tallies
    ):
        return None
    return sum(process.trials[sites[0].unit].spent_s for process in processes)
