"""Waits that serve only to measure times, for the screens: they are not problems, but cost time."""

from __future__ import annotations

from dataclasses import dataclass

from ffm.report.kept.kept_waits import KeptWaits
from ffm.report.numbers import Scale
from ffm.results.documents.analysis import Analysis

HEADING = "Waits for timing"
ADVICE = (
    "If the program measured no times, it would need none of these. Wait only in runs that measure, or measure with "
    "events of the GPU. These savings are not in the lists of problems, and do not add up."
)


@dataclass(frozen=True, slots=True)
class TimingWaits(KeptWaits):
    """A site whose waits serve only to measure times. `certain` is False if that may be so."""

    certain: bool

    def sentence(self, scale: Scale) -> str:
        """Return the site and what it would save in a sentence."""
        return self.sentence_saying(scale, "needed only for timing" if self.certain else "may be there for timing")


def timing_waits(analysis: Analysis) -> list[TimingWaits]:
    """Return the sites that wait only for timing, largest saving first."""
    return [TimingWaits.told(analysis, wait, certain=wait.certain) for wait in analysis.timing]
