"""Waits and transfers about which nothing is proved, for the screens: what removing each would save at most.

They come from a profiler's trace, or from quick mode, which traces one run.
"""

from __future__ import annotations

from dataclasses import dataclass

from ffm.report.not_measured import NOTHING
from ffm.report.numbers import HIDDEN_BELOW_PERCENT, Scale, count, percent
from ffm.results.documents.analysis import Analysis
from ffm.results.places import Place, place

HEADING = "What doing without these saves at most, if they prove unnecessary"
NOT_FOUND = "No unnecessary or misplaced synchronization and no unneeded transfer was found."
NO_WAIT = "The trace shows no wait for a GPU: `ffm path` shows what the run waited for."
NOT_PROVED = (
    "Nothing is proved unnecessary, because one trace does not show what the program needs. `ffm report` shows what "
    "doing without each wait saves at most."
)


def heading(*, shown: bool) -> str:
    """Return the title of the list of such sites; all may save too little to be shown."""
    if shown:
        return HEADING
    return f"Nothing saves {HIDDEN_BELOW_PERCENT} % of the run, even if it proves unnecessary"


def advice(origin: str, *, shown: bool) -> str:
    """Return what to do next, given where the results come from and whether any site is shown."""
    if not shown:
        return "`ffm path` shows what the run waited for."
    trace = "One traced run" if origin == "quick" else "A profiler's trace"
    some = ", for the first five alone with `--sites worst:5`" if origin == "quick" else ""
    return (
        f"{trace} does not show whether the program needs these: `ffm run ./program` finds out{some}. The first of "
        "them are worth proving. A long wait may save little, because the next one then takes longer. These savings do "
        "not add up."
    )


def recorded(origin: str) -> str:
    """Return how the results came about; empty for a measurement by all stages."""
    if origin == "quick":
        return "Quick mode: one traced run."
    return "" if origin == "ffm" else f"Imported from {origin}."


@dataclass(frozen=True, slots=True)
class UnprovedWaits:
    """A site that waits or transfers, with what the run would save without its waits or transfers. Seconds.

    `high_s` is what that saves at most.
    """

    where: Place
    occurrences: int
    total_s: float
    """What its calls took, with their waits."""
    waited_s: float
    saving_s: float
    low_s: float
    high_s: float

    def sentence(self, scale: Scale) -> str:
        """Return it in a sentence."""
        saved = f"{scale.seconds(self.high_s)} ({percent(scale.share(self.high_s))})"
        likely = scale.seconds(self.saving_s)
        times = "once" if self.occurrences == 1 else f"{count(self.occurrences)} times"
        return (
            f"{self.where}: at most {saved}, likely {likely}; called {times}, for {scale.seconds(self.total_s)}, of "
            f"which it waited {scale.seconds(self.waited_s)}."
        )


def why_nothing(analysis: Analysis) -> str:
    """Return why there is nothing to fix, if there is nothing."""
    if analysis.not_measured:
        return NOTHING
    if analysis.proves:
        return NOT_FOUND
    return NOT_PROVED if analysis.unproved else NO_WAIT


def unproved_waits(analysis: Analysis) -> list[UnprovedWaits]:
    """Return the sites about which nothing is proved, largest saving first."""
    return [
        UnprovedWaits(
            place(analysis, wait.site),
            wait.occurrences,
            analysis.sites[wait.site].total_s,
            analysis.sites[wait.site].wait_s,
            wait.saving_s,
            wait.low_s,
            wait.high_s,
        )
        for wait in analysis.unproved
    ]


def worth_proving(waits: list[UnprovedWaits], scale: Scale) -> list[UnprovedWaits]:
    """Leave out the sites that save next to nothing even at most."""
    return [one for one in waits if scale.share(one.high_s) >= HIDDEN_BELOW_PERCENT]
