"""One site: its stack, its times, its findings."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from ffm.errors import FfmError
from ffm.report.downloads import Download, download, trace_hint, unwatched
from ffm.report.findings import Finding, findings, site_saving
from ffm.report.numbers import Estimator, Saving, Scale
from ffm.results.documents.analysis import Analysis
from ffm.results.places import Place, StackFrame, place, stack_frames

if TYPE_CHECKING:
    from ffm.model.estimators.replay import Replayed


@dataclass(frozen=True, slots=True)
class Without:
    """What removing needed waits would save, always by replay: the estimate with its lower and upper limit."""

    seconds: float
    percent: float
    """Percent of the run."""
    low_s: float
    high_s: float


@dataclass(frozen=True, slots=True)
class SiteView:
    """Everything on the screen of `ffm site`. Times are sums over all occurrences."""

    application: str
    wall_s: float
    estimator: Estimator
    where: Place
    driver_function: str
    kind: str
    count: int
    problem_count: int
    total_s: float
    wait_s: float
    gap_s: float
    bytes: int
    saving: Saving
    findings: list[Finding]
    download: Download | None
    """How much of what it downloads the CPU touches; None if it downloads nothing."""
    hint: str
    """What to run to learn more if the watch could not tell; otherwise empty."""
    stack: list[StackFrame]
    without: Without | None
    """What removing its waits would save, where the program needs them as written, or may do so."""
    unproved: bool
    """Whether it is unknown if the program needs them: the results are of one trace, which proves nothing."""
    not_measured: bool
    """Whether it was left out of the measurement."""
    sequences: list[int]
    """Numbers of the sequences that contain the site."""
    results: str
    """The option that names these results, as the user gave it, for the commands; otherwise empty."""


def site(
    analysis: Analysis,
    number: int,
    estimator: Estimator = "carry",
    without: Replayed | None = None,
    results: str = "",
) -> SiteView:
    """Lay out the site with a number, from 1; `without` is what removing its waits would save.

    Raises:
        FfmError: There is no such site, or nothing was recorded at it.
    """
    last = len(analysis.sites)
    if not 1 <= number <= last:
        raise FfmError(
            f"there is no site {number} in {analysis.application}: its sites are numbered 1 to {last}."
            if last
            else f"{analysis.application} has no sites: no traced driver call was made."
        )
    found = analysis.sites[number - 1]
    if not found.call and not found.count:
        raise FfmError(
            f"site {number} of {analysis.application} is not a call: nothing was recorded there. `ffm report` lists "
            "the sites with problems."
        )
    scale = Scale(analysis.wall_s)
    return SiteView(
        application=analysis.application,
        wall_s=analysis.wall_s,
        estimator=estimator,
        where=place(analysis, number - 1),
        driver_function=found.function,
        kind=found.kind,
        count=found.count,
        problem_count=found.problem_count,
        total_s=found.total_s,
        wait_s=found.wait_s,
        gap_s=found.gap_s,
        bytes=found.bytes,
        saving=site_saving(analysis, number - 1),
        findings=findings(analysis, number - 1),
        download=download(found.download),
        hint=trace_hint(analysis, results) if unwatched(analysis, number - 1) else "",
        stack=stack_frames(analysis, number - 1),
        without=None
        if without is None
        else Without(without.likely_s, scale.share(without.likely_s), without.low_s, without.high_s),
        unproved=not analysis.proves,
        not_measured=number - 1 in analysis.not_measured,
        sequences=[
            position
            for position, sequence in enumerate(analysis.sequences, 1)
            if any(operation.site == number - 1 for operation in sequence.operations)
        ],
        results=results,
    )
