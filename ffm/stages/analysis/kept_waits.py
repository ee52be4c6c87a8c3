"""Waits that stay, for timing or because nothing proves them needless, and what the run would save without them."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import msgspec
import numpy as np
from numpy.typing import NDArray

from ffm.model.gpu_times.timelines import Inference
from ffm.model.necessity.program import Comparison
from ffm.model.timeline import Kind, Timeline
from ffm.results.documents.analysis import FetchingWait, KeptWait, SendingWait, TimingWait
from ffm.results.estimates import Estimates
from ffm.results.presumed import Presumed, presumed
from ffm.results.variation import Variation
from ffm.stages.analysis.findings import Findings

REPLAYED_ALTHOUGH_KEPT = 40
"""At most this many sites, those that wait longest, are replayed without the waits that they keep."""


def timing_waits(findings: Findings, kept: list[KeptWait]) -> list[TimingWait]:
    """Return the sites that wait only for timing, and whether that is certain."""
    site, sureness = findings.timeline.site, findings.timing
    return [
        TimingWait(
            site=wait.site,
            occurrences=wait.occurrences,
            certain=bool((sureness[(site == wait.site) & (sureness > 0)] == Comparison.COMPARED).all()),
            saving_s=wait.saving_s,
            low_s=wait.low_s,
            high_s=wait.high_s,
        )
        for wait in kept
        if sureness is not None
    ]


def unproved_waits(
    findings: Findings,
    copy_time: NDArray[np.int64],
    variation: Variation,
    inference: Inference | None,
    estimates: Estimates,
) -> list[KeptWait]:
    """Return the sites of which it is not proved whether their waits are needed: of a quick run, all."""
    if findings.presumed:
        return _presumed(findings, copy_time, variation, inference)
    return _kept(findings.timeline, findings.unproved, estimates)


def waits_kept(timeline: Timeline, kept: NDArray[Any] | None, estimates: Estimates) -> list[KeptWait]:
    """Return the sites with rows that waited and are flagged by a value other than 0, with what not waiting saves."""
    return [] if kept is None else _kept(timeline, (kept > 0) & (timeline.wait > 0), estimates)


def fetching_waits(findings: Findings, timeline: Timeline, estimates: Estimates) -> list[FetchingWait]:
    """Return the sites that fetch values, with what not waiting for them saves."""
    fetching = findings.fetching
    if fetching is None:
        return []
    return [
        FetchingWait(**fields, watched=bool(fetching.watched[timeline.site == fields["site"]].any()))
        for fields in _together(fetching.site, timeline, estimates)
    ]


def sending_waits(findings: Findings, timeline: Timeline, estimates: Estimates) -> list[SendingWait]:
    """Return the sites that wait for uploads, with what not waiting for them saves."""
    sending = findings.sending
    if sending is None:
        return []
    return [
        SendingWait(**fields, pageable=bool(sending.pageable[sending.site == fields["site"]].any()))
        for fields in _together(sending.site, timeline, estimates)
    ]


def _together(site: NDArray[np.int32], timeline: Timeline, estimates: Estimates) -> list[dict[str, Any]]:
    """Return the fields of waits that are done without together with those of other sites: `site` has, for each row,
    the one to which it belongs, or -1. Occurrences are the site's own.
    """
    own = np.bincount(timeline.site[site == timeline.site], minlength=int(site.max(initial=-1)) + 1)
    kept = _kept(replace(timeline, site=np.where(site >= 0, site, timeline.site)), site >= 0, estimates)
    return [{**msgspec.structs.asdict(wait), "occurrences": int(own[wait.site])} for wait in kept]


def _kept(timeline: Timeline, kept: NDArray[np.bool_] | None, estimates: Estimates) -> list[KeptWait]:
    """Return the timeline's sites with such rows, with what not waiting there would save, largest saving first."""
    if kept is None or not kept.any():
        return []
    # An explicit synchronization is left out as a whole.
    costs = np.where(timeline.kind == Kind.SYNCHRONIZATION, timeline.duration, timeline.wait)
    waited = np.bincount(timeline.site, weights=np.where(kept, costs, 0))
    count = np.bincount(timeline.site, weights=kept).astype(np.int64)
    most = np.argsort(-waited, kind="stable")[:REPLAYED_ALTHOUGH_KEPT]
    sites = most[count[most] > 0].tolist()
    found = [
        KeptWait(
            site=site,
            occurrences=int(count[site]),
            saving_s=without.likely_s,
            low_s=without.low_s,
            high_s=without.high_s,
        )
        for site, without in zip(
            sites,
            estimates.without_each([np.flatnonzero((timeline.site == site) & kept) for site in sites]),
            strict=False,
        )
    ]
    return sorted(found, key=lambda wait: -wait.saving_s)


def _presumed(
    findings: Findings, copy_time: NDArray[np.int64], variation: Variation, inference: Inference | None
) -> list[KeptWait]:
    """Return all sites that wait or transfer, with what removing each would save, largest saving first."""
    timeline = presumed(findings.timeline, findings.work)
    count = np.bincount(timeline.site, weights=timeline.problem != 0, minlength=len(findings.sites)).astype(np.int64)
    sites = np.flatnonzero(count).tolist()
    given = None if inference is None else inference.if_anything_is_late
    estimates = Presumed(findings.timeline, findings.work, copy_time, findings.wall_s, given, variation)
    benefits = estimates.of_sites([[site] for site in sites])
    kept = [
        KeptWait(
            site=site,
            occurrences=int(count[site]),
            saving_s=benefit.expected_s,
            low_s=0.0,
            high_s=benefit.high_s or 0.0,
        )
        for site, benefit in zip(sites, benefits, strict=True)
    ]
    return sorted(kept, key=lambda wait: (-wait.saving_s, -wait.high_s))
