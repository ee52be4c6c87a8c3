"""All waits that are not problems but cost time, by what they wait for: `ffm report` and `ffm remedies` show them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from ffm.report.kept import fetching, ordering, sending, sharing, timing
from ffm.report.kept.fetching import FetchingWaits, fetching_waits
from ffm.report.kept.kept_waits import KeptWaits, worth_telling
from ffm.report.kept.ordering import OrderingWaits, ordering_waits
from ffm.report.kept.sending import SendingWaits, sending_waits
from ffm.report.kept.sharing import SharingWaits, sharing_waits
from ffm.report.kept.timing import TimingWaits, timing_waits
from ffm.report.numbers import Scale
from ffm.results.documents.analysis import Analysis


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
        sections = (
            WaitsSection(ordering.HEADING, self.ordering, self.ordering_hidden, ordering.ADVICE),
            WaitsSection(fetching.HEADING, self.fetching, self.fetching_hidden, fetching.advice(self.fetching)),
            WaitsSection(sending.HEADING, self.sending, self.sending_hidden, sending.advice(self.sending)),
            WaitsSection(timing.HEADING, self.timing, self.timing_hidden, timing.ADVICE),
            WaitsSection(sharing.HEADING, self.sharing, self.sharing_hidden, sharing.ADVICE),
        )
        return [section for section in sections if section.waits]


def costly_waits(analysis: Analysis, *, show_all: bool) -> CostlyWaits:
    """Return the sites of every kind, each kind with the largest saving first."""
    scale = Scale(analysis.wall_s)
    timed, timed_hidden = worth_telling(timing_waits(analysis), scale, show_all=show_all)
    shared, shared_hidden = worth_telling(sharing_waits(analysis), scale, show_all=show_all)
    ordered, ordered_hidden = worth_telling(ordering_waits(analysis), scale, show_all=show_all)
    fetched, fetched_hidden = worth_telling(fetching_waits(analysis), scale, show_all=show_all)
    sent, sent_hidden = worth_telling(sending_waits(analysis), scale, show_all=show_all)
    return CostlyWaits(
        timing=timed,
        timing_hidden=timed_hidden,
        sharing=shared,
        sharing_hidden=shared_hidden,
        ordering=ordered,
        ordering_hidden=ordered_hidden,
        fetching=fetched,
        fetching_hidden=fetched_hidden,
        sending=sent,
        sending_hidden=sent_hidden,
    )
