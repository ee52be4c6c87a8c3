"""Waits that are not problems but cost time, for the screens."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Self, TypeVar

from ffm.report.numbers import HIDDEN_BELOW_PERCENT, Scale, count, percent
from ffm.results.documents.analysis import Analysis, KeptWait
from ffm.results.places import Place, place


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
    def told(cls, analysis: Analysis, wait: KeptWait, **more: bool) -> Self:
        """Return a site of the document; `more` are the fields that a subclass adds."""
        calls = analysis.sites[wait.site].count
        return cls(place(analysis, wait.site), wait.occurrences, calls, wait.saving_s, wait.low_s, wait.high_s, **more)

    @abstractmethod
    def sentence(self, scale: Scale) -> str:
        """Return the site and what it would save in a sentence."""

    def sentence_saying(self, scale: Scale, why: str) -> str:
        """Return the sentence; `why` follows the number of calls."""
        saved = f"{scale.seconds(self.saving_s)} ({percent(scale.share(self.saving_s))})"
        between = f"{scale.seconds(self.low_s)} to {scale.seconds(self.high_s)}"
        return (
            f"{self.where}: {count(self.occurrences)} of {count(self.of)} calls {why}; not waiting saves {saved}, "
            f"{between}."
        )


Waits = TypeVar("Waits", bound=KeptWaits)


def worth_telling(waits: list[Waits], scale: Scale, *, show_all: bool) -> tuple[list[Waits], int]:
    """Return the sites where not waiting saves enough to be shown, as in `Scale.shows`, and how many are hidden."""

    def most_percent(one: KeptWaits) -> float:
        return max(scale.share(one.saving_s), scale.share_beyond_variation(one.high_s))

    shown = [one for one in waits if show_all or most_percent(one) >= HIDDEN_BELOW_PERCENT]
    return shown, len(waits) - len(shown)
