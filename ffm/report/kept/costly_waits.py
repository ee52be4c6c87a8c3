"""All waits that are not problems but cost time, by what they wait for: `ffm report` and `ffm remedies` show them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TypeVar

from ffm.report.kept import kept_waits
from ffm.report.kept.kept_waits import KeptWaits, OrderingWaits, SharingWaits, TimingWaits
from ffm.report.kept.python_waits import (
    FetchingWaits,
    SendingWaits,
    fetching_advice,
    fetching_waits,
    sending_advice,
    sending_waits,
)
from ffm.report.numbers import HIDDEN_BELOW_PERCENT, Scale
from ffm.results.documents.analysis import Analysis

Waits = TypeVar("Waits", bound=KeptWaits)


@dataclass(frozen=True, slots=True)
class WaitsSection:
    """The sites of one kind that a screen shows; `hidden` more save less than the limit."""

    heading: str
    waits: Sequence[KeptWaits]
    hidden: int
    advice: str


@dataclass(frozen=True, slots=True)
class CostlyWaits:
    """The sites of every kind. Those that save less than the limit are only counted, as `..._hidden`."""

    timing: list[TimingWaits]
    """Sites that wait only to measure times, or may do so."""
    timing_hidden: int
    sharing: list[SharingWaits]
    """Sites that only another process may need to wait."""
    sharing_hidden: int
    ordering: list[OrderingWaits]
    """Sites whose waits only order streams, which events could do."""
    ordering_hidden: int
    fetching: list[FetchingWaits]
    """Sites at which Python code fetches values again and again."""
    fetching_hidden: int
    sending: list[SendingWaits]
    """Sites at which Python code waits for uploads again and again."""
    sending_hidden: int

    def sections(self) -> list[WaitsSection]:
        """Return one section for each kind that has sites to show, in the order in which screens show them."""
        fetch, send = fetching_advice(self.fetching), sending_advice(self.sending)
        shared = "Waits that may be needed: device memory is shared with another process"
        sections = (
            WaitsSection("Waits that events could replace", self.ordering, self.ordering_hidden, kept_waits.ORDERING),
            WaitsSection("Values that the CPU fetches again and again", self.fetching, self.fetching_hidden, fetch),
            WaitsSection("Uploads that the CPU waits for again and again", self.sending, self.sending_hidden, send),
            WaitsSection("Waits for timing", self.timing, self.timing_hidden, kept_waits.TIMING),
            WaitsSection(shared, self.sharing, self.sharing_hidden, kept_waits.SHARING),
        )
        return [section for section in sections if section.waits]


def costly_waits(analysis: Analysis, *, show_all: bool) -> CostlyWaits:
    """Return the sites of every kind, each kind with the largest saving first."""

    def shown(waits: list[Waits]) -> tuple[list[Waits], int]:
        """Return the sites that save enough to be shown, as in `Scale.shows`, and how many others there are."""
        scale = Scale(analysis.wall_s)
        found = [
            one
            for one in waits
            if show_all
            or max(scale.share(one.saving_s), scale.share_beyond_variation(one.high_s)) >= HIDDEN_BELOW_PERCENT
        ]
        return found, len(waits) - len(found)

    return CostlyWaits(
        *shown([TimingWaits.of_site(analysis, wait, certain=wait.certain) for wait in analysis.timing]),
        *shown([SharingWaits.of_site(analysis, wait) for wait in analysis.sharing]),
        *shown([OrderingWaits.of_site(analysis, wait) for wait in analysis.ordering]),
        *shown(fetching_waits(analysis)),
        *shown(sending_waits(analysis)),
    )
