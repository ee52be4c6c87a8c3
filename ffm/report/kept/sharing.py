"""Waits that only another process may need, for the screens: they are not problems, but cost time."""

from __future__ import annotations

from dataclasses import dataclass

from ffm.report.kept.kept_waits import KeptWaits
from ffm.report.numbers import Scale
from ffm.results.documents.analysis import Analysis

HEADING = "Waits that may be needed: device memory is shared with another process"
ADVICE = (
    "Nothing in this process relies on these waits, but another process that shares device memory with it may: NCCL "
    "and CUDA-aware MPI libraries share memory in this way. Leave out a wait if you know that no other process uses "
    "what the work before it reads or writes, or that others order themselves after it by an event. These savings are "
    "not in the lists of problems, and do not add up."
)


@dataclass(frozen=True, slots=True)
class SharingWaits(KeptWaits):
    """A site on whose waits nothing relies, except possibly another process."""

    def sentence(self, scale: Scale) -> str:
        """Return the site and what it would save in a sentence."""
        return self.sentence_saying(scale, "may be needed")


def sharing_waits(analysis: Analysis) -> list[SharingWaits]:
    """Return the sites that wait only for what another process may use, largest saving first."""
    return [SharingWaits.told(analysis, wait) for wait in analysis.sharing]
