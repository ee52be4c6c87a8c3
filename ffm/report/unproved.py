"""Waits of a profiler's trace, for the screens: what each would save at most, if it proves unnecessary."""

from __future__ import annotations

from dataclasses import dataclass

from ffm.report.numbers import Scale, count, percent
from ffm.report.places import Place, place
from ffm.results.analysis_document import Analysis

HEADING = "What doing without these waits saves at most, if they prove unnecessary"
ADVICE = (
    "A profiler's trace does not show whether the program needs a wait: `ffm run ./program` finds out. Look at the "
    "first of these first. A long wait may save little, because the next one then takes longer. These savings do not "
    "add up."
)

NOT_FOUND = "No unnecessary or misplaced synchronization and no unneeded transfer was found."
NOT_PROVED = (
    "Nothing is proved unnecessary, because a profiler recorded the run. `ffm report` shows what doing without each "
    "wait saves at most."
)


@dataclass(frozen=True, slots=True)
class UnprovedWaits:
    """A site that waits, with what the run would save without its waits. Seconds."""

    where: Place
    occurrences: int
    waited_s: float
    saving_s: float
    low_s: float
    high_s: float

    def told(self, scale: Scale) -> str:
        """Return it in a sentence."""
        saved = f"{scale.seconds(self.saving_s)} ({percent(scale.share(self.saving_s))})"
        between = f"{scale.seconds(self.low_s)} to {scale.seconds(self.high_s)}"
        return (
            f"{self.where}: at most {saved}, {between}; {count(self.occurrences)} calls, which waited for "
            f"{scale.seconds(self.waited_s)}."
        )


def why_nothing(analysis: Analysis) -> str:
    """Return why there is nothing to fix, if there is nothing."""
    return NOT_PROVED if analysis.unproved else NOT_FOUND


def unproved_waits(analysis: Analysis) -> list[UnprovedWaits]:
    """Return the sites that wait in a profiler's trace, largest saving first."""
    return [
        UnprovedWaits(
            place(analysis, wait.site),
            wait.occurrences,
            analysis.sites[wait.site].wait_s,
            wait.saving_s,
            wait.low_s,
            wait.high_s,
        )
        for wait in analysis.unproved
    ]
