"""Sites that were left out of a measurement, for the screens: whether the program needs them is not known."""

from __future__ import annotations

from dataclasses import dataclass

from ffm.report.numbers import Scale, plural
from ffm.results.documents.analysis import Analysis
from ffm.results.places import Place, place

HEADING = "Not measured"
ADVICE = (
    "Whether the program needs these is not known. What is said about the measured sites holds as long as these stay. "
    "`ffm run` without --sites measures all."
)
NOTHING = "No problem was found among the sites that were measured."


@dataclass(frozen=True, slots=True)
class NotMeasured:
    """A site that waits or transfers and was left out. Seconds."""

    where: Place
    occurrences: int
    waited_s: float

    def sentence(self, scale: Scale) -> str:
        """Return the site and how long it waited in a sentence."""
        return (
            f"{self.where}: {plural(self.occurrences, 'call')}, in which it waited for {scale.seconds(self.waited_s)}."
        )


def not_measured(analysis: Analysis) -> list[NotMeasured]:
    """Return the sites that were left out, longest wait first."""
    found = [
        NotMeasured(place(analysis, index), analysis.sites[index].count, analysis.sites[index].wait_s)
        for index in analysis.not_measured
    ]
    return sorted(found, key=lambda one: -one.waited_s)
