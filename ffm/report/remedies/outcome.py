"""What applying remedies achieved: times, operations removed, and whether the results changed (dissertation 7.4)."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum

from ffm.remedy.correct import Comparison
from ffm.remedy.fitness import left
from ffm.remedy.layout import Counted, Trial
from ffm.remedy.measured_costs import Paid, paid
from ffm.remedy.plan_file import Correction, Planned
from ffm.remedy.reasons import Reason
from ffm.remedy.shift import Shift, shift_between
from ffm.remedy.worth import Costs
from ffm.report.remedies.outcome_notes import notes_of_runs
from ffm.report.remedies.outputs import compare_outputs
from ffm.report.remedies.uncorrected import why_not
from ffm.results.documents.analysis import Analysis
from ffm.results.documents.benefit import Benefit
from ffm.results.documents.site import Site
from ffm.results.stored import Results, benefit_of_correcting

REMOVED = {
    "synchronizations": "explicit synchronizations that returned at once",
    "free_waits": "waits of frees",
    "frees": "frees that never reached the driver",
    "allocations": "allocations served from the pool",
    "transfer_waits": "waits of transfers",
    "uploads_copied": "uploads replaced by a copy on the device",
    "uploads_nothing": "uploads replaced by nothing",
    "uploads_staged": "synchronous uploads made asynchronous",
    "downloads_staged": "synchronous downloads made asynchronous",
}
"""Counters of what corrections removed, in words."""

WAITS = ("synchronizations", "free_waits", "transfer_waits")
"""Those that count as removed synchronization operations in the dissertation's Table 7.2."""

FALLBACKS = {
    "waits_host_memory": "waits kept because the GPU was working on host memory",
    "waits_questions": "deferred waits because the program asked for the state or times of work",
    "waits_clocks": "removed waits made up for because the program read a clock",
    "waits_unseen": "waits kept because the program could read clocks unseen",
    "waits_destination": "transfers that waited because their host memory could not be closed until they were done",
    "waits_source": "downloads that waited because their source is not from cudaMalloc or cudaMallocAsync",
    "uploads_unfollowed": "uploads left unchanged because their destination is not from cudaMalloc or cudaMallocAsync",
    "uploads_pinned": "uploads left unchanged because the GPU reads their pinned memory only later",
    "waits_capture": "calls left unchanged during a stream capture",
    "waits_driver": "calls left unchanged because the driver refused part of the correction",
    "deliveries_awaited": "waits at the first use of memory that the GPU was still working on",
}
"""Counters of waits that corrections did not remove, or only moved, in words."""

MEMORY = {
    "pool_peak_bytes": "peak device memory idle in the pool",
    "cache_bytes": "device memory that holds copies of uploads",
    "staging_bytes": "pinned host memory for staging",
    "own_pages_bytes": "peak host memory spent on giving large heap blocks their own pages",
}


class Found(StrEnum):
    """What comparing a site's corrected calls with the original ones, while the program ran, found."""

    HELPED = "helped"
    NO_DIFFERENCE = "made no difference"
    WENT_BACK = "went back"
    NOT_COMPARED = "not compared"
    """Too few calls, or calls so short that they could not make a difference."""


WORTH_A_RATIO = 0.005
"""Estimates below this share of the run are within the noise between runs: a ratio to them is meaningless."""


WORTH_TELLING = 0.001
"""The share of the run that a site must save to be listed if no correction fits it."""


@dataclass(frozen=True, slots=True)
class RemedyCount:
    """One kind of remedy: call sites corrected at least once, of those planned, and calls corrected there."""

    remedy: str
    planned: int
    remedied: int
    corrected: int
    waited: int


@dataclass(frozen=True, slots=True)
class SiteCount:
    """A planned call site, numbered as in `ffm site`: all calls, corrected ones, those that waited after all, and those
    left as they are to compare, or because it had been found that the correction does not pay.
    """

    site: int
    place: str
    remedies: list[str]
    calls: int
    corrected: int
    waited: int
    original: int
    found: Found
    slower: float | None
    """How much slower the program got on with the correction: a share of the longer time, negative if it was faster,
    None if it was not compared.
    """


@dataclass(frozen=True, slots=True)
class LeftSite:
    """A call site with a problem that is left unchanged. `expected_s` is what fixing it alone would save."""

    site: int
    place: str
    expected_s: float
    why: str


@dataclass(frozen=True, slots=True)
class Expected:
    """Seconds that the corrections are expected to save: what the fixes are estimated to save, less what correcting
    cost in the corrected runs, as far as they show it. The upper end has nothing of it: the CPU may have had that time
    left while the GPU worked. Negative where corrections cost more than they save, as those may that the user names.
    """

    seconds: float
    low_s: float | None
    high_s: float | None


def expected_of(benefit: Benefit, cost: Paid) -> Expected:
    """Return what corrections with this cost are expected to save."""
    low_s = None if benefit.low_s is None else benefit.low_s - cost.most_s
    return Expected(benefit.expected_s - cost.likely_s, low_s, benefit.high_s)


def not_paying(expected: Expected, estimate_s: float, in_calls_s: float) -> list[str]:
    """Return a note on corrections that cost more than they are estimated to save: `in_calls_s` in the corrected calls,
    the rest for getting into the program.
    """
    if expected.seconds >= 0:
        return []
    if in_calls_s > estimate_s:
        return [
            f"The corrected calls took {in_calls_s:.3f} s, more than the {estimate_s:.3f} s that doing without them is "
            "estimated to save. What is corrected in the source does not cost that."
        ]
    return [
        "Correcting a program at all costs some milliseconds, however little is corrected. These corrections are not "
        "expected to make up for that in this run; it does not count against corrections that are named."
    ]


@dataclass(frozen=True, slots=True)
class Outcome:
    """The whole answer of `ffm apply-remedy`.

    Seconds are medians of the runs. `ratio` is saving divided by estimate, or None if the estimate is below 0.5 % of
    the run. `twin_s` and `twin_saving_s` belong to a version corrected by hand, if one was given.
    """

    application: str
    command: list[str]
    stdin: str
    """The file that it read from its standard input; empty if it read none."""
    runs: int
    bare_s: float
    corrected_s: float
    saving_s: float
    saving_percent: float
    saving_interval: Shift | None
    """Seconds; None with one run each, which does not tell how certain the saving is."""
    estimator: str
    estimate_s: float
    estimate_low_s: float | None
    estimate_high_s: float | None
    expected: Expected
    ratio: float | None
    twin_s: float | None
    twin_saving_s: float | None
    bare_runs_s: list[float]
    corrected_runs_s: list[float]
    twin_runs_s: list[float]
    remedies: list[RemedyCount]
    synchronizations_removed: int
    removed: dict[str, int]
    fallbacks: dict[str, int]
    memory: dict[str, int]
    sites: list[SiteCount]
    left: list[LeftSite]
    """Selected sites that no correction fits though they would save at least 0.1 % of the run, and sites whose
    correction is not expected to pay; largest saving first.
    """
    differences: list[str]
    """Why the corrected program does not behave like the original; empty if it does."""
    notes: list[str]


def outcome(
    results: Results,
    comparison: Comparison,
    command: list[str],
    among: Collection[int] | None,
    unpaid: Mapping[int, Reason],
    costs: Costs,
) -> Outcome:
    """Summarize the runs.

    `among` are the sites that were selected from; None means all. `unpaid` are those whose correction is not expected
    to pay, and why. `costs` are those of the others.
    """
    document = results.document
    totals = {
        name: sum(process.values[name] for process in comparison.counted) for name in (*REMOVED, *FALLBACKS, *MEMORY)
    }
    sites = _sites(results, comparison)
    benefit = benefit_of_correcting(results, [site.site for site in comparison.planned if site.corrections])
    cost = paid(costs, comparison)
    estimate_s, expected = benefit.expected_s, expected_of(benefit, cost)
    unpaid_notes = not_paying(expected, estimate_s, cost.in_calls_s)
    saving_s = comparison.bare_s - comparison.corrected_s
    differences, notes = compare_outputs(comparison.bare, comparison.corrected)
    return Outcome(
        application=document.application,
        command=command,
        stdin="" if comparison.stdin is None else str(comparison.stdin),
        runs=len(comparison.bare),
        bare_s=comparison.bare_s,
        corrected_s=comparison.corrected_s,
        saving_s=saving_s,
        saving_percent=100 * saving_s / comparison.bare_s if comparison.bare_s else 0.0,
        saving_interval=shift_between(
            [run.wall_s for run in comparison.bare], [run.wall_s for run in comparison.corrected]
        ),
        estimator="carry" if benefit.replay_s is None else "replay",
        estimate_s=estimate_s,
        estimate_low_s=benefit.low_s,
        estimate_high_s=benefit.high_s,
        expected=expected,
        ratio=saving_s / estimate_s if estimate_s > WORTH_A_RATIO * comparison.bare_s else None,
        twin_s=comparison.twin_s,
        twin_saving_s=None if comparison.twin_s is None else comparison.bare_s - comparison.twin_s,
        bare_runs_s=[run.wall_s for run in comparison.bare],
        corrected_runs_s=[run.wall_s for run in comparison.corrected],
        twin_runs_s=[run.wall_s for run in comparison.twin],
        remedies=_remedies(comparison.planned, sites),
        synchronizations_removed=sum(totals[name] for name in WAITS),
        removed={name: totals[name] for name in REMOVED if totals[name]},
        fallbacks={name: totals[name] for name in FALLBACKS if totals[name]},
        memory={name: totals[name] for name in MEMORY if totals[name]},
        sites=sites,
        left=_left(results.document, comparison.planned, among, unpaid),
        differences=differences,
        notes=notes + notes_of_runs(comparison, command, results) + unpaid_notes,
    )


def _left(
    document: Analysis, planned: list[Planned], among: Collection[int] | None, unpaid: Mapping[int, Reason]
) -> list[LeftSite]:
    least_s = WORTH_TELLING * document.wall_s
    unfit = {
        index: why
        for index, why in left(document, planned).items()
        if (among is None or index in among) and document.sites[index].benefit.expected_s >= least_s
    }
    sites = [
        LeftSite(index + 1, _place(document.sites[index]), document.sites[index].benefit.expected_s, why_not(why))
        for index, why in (unfit | dict(unpaid)).items()
    ]
    return sorted(sites, key=lambda site: -site.expected_s)


def _place(site: Site) -> str:
    return f"{site.call} {site.file.rpartition('/')[2]}:{site.line}" if site.line else site.call


def _sites(results: Results, comparison: Comparison) -> list[SiteCount]:
    counts = []
    for place, planned in enumerate(comparison.planned):
        site = results.document.sites[planned.site]
        tallies = [process.tallies[place] for process in comparison.counted]
        trial = _trial(comparison.counted, planned.unit)
        counts.append(
            SiteCount(
                site=planned.site + 1,
                place=_place(site),
                remedies=[correction.value for correction in planned.corrections],
                calls=sum(tally.calls for tally in tallies),
                corrected=sum(tally.corrected for tally in tallies),
                waited=sum(tally.waited for tally in tallies),
                original=sum(tally.original for tally in tallies),
                found=_found(trial),
                slower=None if trial is None else trial.slower,
            )
        )
    return sorted(counts, key=lambda count: count.site)


def _trial(counted: Sequence[Counted], unit: int) -> Trial | None:
    """Return the unit's trial in the process that compared most; None if no process did."""
    trials = [process.trials[unit] for process in counted if process.trials[unit].pairs]
    return max(trials, key=lambda trial: trial.pairs, default=None)


def _found(trial: Trial | None) -> Found:
    if trial is None or trial.slower is None:
        return Found.NOT_COMPARED
    if not trial.corrects:
        return Found.WENT_BACK
    return Found.HELPED if trial.slower < 0 else Found.NO_DIFFERENCE


def _remedies(planned: Sequence[Planned], sites: Sequence[SiteCount]) -> list[RemedyCount]:
    counts = []
    for remedy in Correction:
        mine = [site for site in sites if remedy.value in site.remedies]
        if mine:
            counts.append(
                RemedyCount(
                    remedy=remedy.value,
                    planned=len(mine),
                    remedied=sum(1 for site in mine if site.corrected),
                    corrected=sum(site.corrected for site in mine),
                    waited=sum(site.waited for site in mine),
                )
            )
    return counts
