"""What was found about a site, in words: its verdicts, what must stay for them to hold, and what fixing it saves."""

from __future__ import annotations

from dataclasses import dataclass

from ffm.report.numbers import Saving, Scale
from ffm.report.verdict_reasons import COVERED_BY_ITSELF, WORDS
from ffm.results.documents.analysis import Analysis
from ffm.results.documents.site import Verdict
from ffm.results.places import Place, place


@dataclass(frozen=True, slots=True)
class Finding:
    """A verdict in words: how many occurrences it covers, its reason, and the other site that it refers to.

    `subject` is what the verdict is about, `synchronization` or `transfer`. `keep` is the synchronization that must
    stay for the verdict to hold. `first` is the transfer that is repeated.
    """

    subject: str
    verdict: str
    reason: str
    occurrences: int
    of: int
    keep: Place | None
    first: Place | None
    itself: bool = False
    """Whether `keep` is the same site: a later call of it must stay, as the reason says."""


def findings(analysis: Analysis, index: int) -> list[Finding]:
    """Return all verdicts on a site, synchronizations first."""
    site = analysis.sites[index]

    def finding(subject: str, verdict: Verdict) -> Finding:
        keep = None if verdict.keep is None else place(analysis, verdict.keep)
        first = None if verdict.first is None else place(analysis, verdict.first)
        itself = verdict.keep == index
        reason = COVERED_BY_ITSELF if itself else WORDS[verdict.because]
        return Finding(subject, verdict.kind, reason, verdict.occurrences, site.count, keep, first, itself)

    return [
        *(finding("synchronization", verdict) for verdict in site.synchronization),
        *(finding("transfer", verdict) for verdict in site.transfer),
    ]


def kept(analysis: Analysis, indices: list[int]) -> list[Place]:
    """Return what must stay for the conditional verdicts on these sites to hold, each site once."""
    wanted = {
        verdict.keep: None
        for index in indices
        for verdict in analysis.sites[index].synchronization
        if verdict.keep is not None
    }
    return [place(analysis, index) for index in wanted]


def site_saving(analysis: Analysis, index: int) -> Saving:
    """Return what fixing this site alone would save over the whole run."""
    return Scale(analysis.wall_s).saving(analysis.sites[index].benefit)
