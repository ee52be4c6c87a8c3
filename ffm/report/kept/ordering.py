"""Waits that only order streams, for the screens: the program needs the order, but the CPU need not wait for it."""

from __future__ import annotations

from dataclasses import dataclass

from ffm.report.kept.kept_waits import KeptWaits
from ffm.report.numbers import Scale
from ffm.results.documents.analysis import Analysis

HEADING = "Waits that events could replace"
ADVICE = (
    "These waits only put the work of one stream after that of another. Record an event after the earlier work, and "
    "let the later stream wait for it (cudaEventRecord, cudaStreamWaitEvent): the GPU keeps the order, and the CPU "
    "goes on. Streams that have no memory in common need neither, and save more. These savings are not in the lists of "
    "problems, and do not add up."
)


@dataclass(frozen=True, slots=True)
class OrderingWaits(KeptWaits):
    """A site on whose waits nothing relies but the order of streams."""

    def sentence(self, scale: Scale) -> str:
        """Return the site and what it would save in a sentence."""
        return self.sentence_saying(scale, "only order streams")


def ordering_waits(analysis: Analysis) -> list[OrderingWaits]:
    """Return the sites whose waits only order streams, largest saving first."""
    return [OrderingWaits.told(analysis, wait) for wait in analysis.ordering]
