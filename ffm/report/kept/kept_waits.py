"""Waits that are not problems but cost time: those that only order streams, measure times, or serve other processes."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Any, Self

from ffm.report.numbers import Scale, count, percent
from ffm.results.documents.analysis import Analysis, KeptWait
from ffm.results.places import Place, place

ORDERING = (
    "These waits only put the work of one stream after that of another. Record an event after the earlier work, and "
    "let the later stream wait for it (cudaEventRecord, cudaStreamWaitEvent): the GPU keeps the order, and the CPU "
    "goes on. Streams that have no memory in common need neither, and save more. These savings are not in the lists of "
    "problems, and do not add up."
)
TIMING = (
    "If the program measured no times, it would need none of these. Wait only in runs that measure, or measure with "
    "events of the GPU. These savings are not in the lists of problems, and do not add up."
)
SHARING = (
    "Nothing in this process relies on these waits, but another process that shares device memory with it may: NCCL "
    "and CUDA-aware MPI libraries share memory in this way. Leave out a wait if you know that no other process uses "
    "what the work before it reads or writes, or that others order themselves after it by an event. These savings are "
    "not in the lists of problems, and do not add up."
)


@dataclass(frozen=True, slots=True)
class KeptWaits(ABC):
    """A site with such waits, and what not waiting there would save."""

    where: Place
    occurrences: int
    of: int
    saving_s: float
    low_s: float
    high_s: float

    @classmethod
    def of_site(cls, analysis: Analysis, wait: KeptWait, **more: Any) -> Self:
        """Return a site of the document; `more` are the fields that a subclass adds."""
        calls = analysis.sites[wait.site].count
        return cls(place(analysis, wait.site), wait.occurrences, calls, wait.saving_s, wait.low_s, wait.high_s, **more)

    @abstractmethod
    def what(self) -> str:
        """Return what the calls do, or may do, to follow their number in a sentence."""

    def sentence(self, scale: Scale) -> str:
        """Return the site and what it would save in a sentence."""
        saved = f"{scale.seconds(self.saving_s)} ({percent(scale.share(self.saving_s))})"
        between = f"{scale.seconds(self.low_s)} to {scale.seconds(self.high_s)}"
        return (
            f"{self.where}: {count(self.occurrences)} of {count(self.of)} calls {self.what()}; not waiting saves "
            f"{saved}, {between}."
        )


@dataclass(frozen=True, slots=True)
class OrderingWaits(KeptWaits):
    """A site on whose waits nothing relies but the order of streams."""

    def what(self) -> str:
        """Return what the calls do."""
        return "only order streams"


@dataclass(frozen=True, slots=True)
class TimingWaits(KeptWaits):
    """A site whose waits serve only to measure times. `certain` is False if that may be so."""

    certain: bool

    def what(self) -> str:
        """Return what the calls do, or may do."""
        return "needed only for timing" if self.certain else "may be there for timing"


@dataclass(frozen=True, slots=True)
class SharingWaits(KeptWaits):
    """A site on whose waits nothing relies, except possibly another process."""

    def what(self) -> str:
        """Return what the calls may do."""
        return "may be needed"
