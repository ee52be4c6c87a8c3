"""Waits that only another process may need, for the screens: they are no problems, but cost time."""

from __future__ import annotations

from dataclasses import dataclass

from ffm.report.numbers import Scale, count, percent
from ffm.results.documents.analysis import Analysis
from ffm.results.places import Place, place

HEADING = "Waits that may be needed: device memory is shared with another process"
ADVICE = (
    "Nothing in this process relies on these waits. A process that shares device memory with it may: NCCL and MPI "
    "libraries that know of GPUs share it in this way. Leave out a wait where you know that no other process uses what "
    "the work before it reads or writes, or orders itself after it by an event. These savings are not in the lists of "
    "problems, and do not add up."
)


@dataclass(frozen=True, slots=True)
class SharingWaits:
    """A site on whose waits nothing is known to rely but, possibly, another process."""

    where: Place
    occurrences: int
    of: int
    saving_s: float
    low_s: float
    high_s: float

    def told(self, scale: Scale) -> str:
        """Return it in a sentence."""
        saved = f"{scale.seconds(self.saving_s)} ({percent(scale.share(self.saving_s))})"
        between = f"{scale.seconds(self.low_s)} to {scale.seconds(self.high_s)}"
        return (
            f"{self.where}: {count(self.occurrences)} of {count(self.of)} calls may be needed; not to wait saves "
            f"{saved}, {between}."
        )


def sharing_waits(analysis: Analysis) -> list[SharingWaits]:
    """Return the sites that wait only for what another process may use, largest saving first."""
    return [
        SharingWaits(
            place(analysis, wait.site),
            wait.occurrences,
            analysis.sites[wait.site].count,
            wait.saving_s,
            wait.low_s,
            wait.high_s,
        )
        for wait in analysis.sharing
    ]
