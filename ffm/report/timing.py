"""Waits that serve only to measure times, for the screens: they are no problems, but cost time."""

from __future__ import annotations

from dataclasses import dataclass

from ffm.report.numbers import Scale, count, percent
from ffm.results.documents.analysis import Analysis
from ffm.results.places import Place, place

HEADING = "Waits for timing"
ADVICE = (
    "Without measuring times, the program would need none of these. Wait only in a run that measures, or measure with "
    "events of the GPU. These savings are not in the lists of problems, and do not add up."
)


@dataclass(frozen=True, slots=True)
class TimingWaits:
    """A site whose waits serve only to measure times. `certain` is False if that may be so."""

    where: Place
    occurrences: int
    of: int
    certain: bool
    saving_s: float
    low_s: float
    high_s: float

    def told(self, scale: Scale) -> str:
        """Return it in a sentence."""
        why = "needed only for timing" if self.certain else "may be there for timing"
        saved = f"{scale.seconds(self.saving_s)} ({percent(scale.share(self.saving_s))})"
        between = f"{scale.seconds(self.low_s)} to {scale.seconds(self.high_s)}"
        return (
            f"{self.where}: {count(self.occurrences)} of {count(self.of)} calls {why}; not to wait saves {saved}, "
            f"{between}."
        )


def timing_waits(analysis: Analysis) -> list[TimingWaits]:
    """Return the sites that wait only for timing, largest saving first."""
    return [
        TimingWaits(
            place(analysis, wait.site),
            wait.occurrences,
            analysis.sites[wait.site].count,
            wait.certain,
            wait.saving_s,
            wait.low_s,
            wait.high_s,
        )
        for wait in analysis.timing
    ]
