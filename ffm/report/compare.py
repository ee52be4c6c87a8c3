"""What a change to a program brought: two measurements side by side, and what the first one had estimated."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import PurePath
from statistics import median

from ffm.errors import FfmError
from ffm.gate.problems import CallSite, call_site
from ffm.remedy.shift import shift_between
from ffm.report.commands import stdin_of
from ffm.results.documents.analysis import Analysis
from ffm.results.documents.benefit import Benefit
from ffm.results.documents.run import Run
from ffm.results.places import place
from ffm.results.stored import Results, benefits_of_sites


@dataclass(frozen=True, slots=True)
class SiteChange:
    """A call site with problems before or after. Numbers are those of `ffm site`; None where there is no such site."""

    place: str
    call: str
    file: str
    line: int
    """0 if it is unknown."""
    old_site: int | None
    new_site: int | None
    old_count: int
    """Calls with a problem before, and after."""
    new_count: int
    old_seconds: float
    """What doing without them alone was estimated to save before, and is after."""
    new_seconds: float


@dataclass(frozen=True, slots=True)
class Interval:
    """An interval of seconds, and the probability with which such an interval holds the difference, 0 to 1."""

    low_s: float
    high_s: float
    confidence: float


@dataclass(frozen=True, slots=True)
class Promise:
    """What fixing all sites that are gone was estimated to save, before the change."""

    seconds: float
    low_s: float | None
    high_s: float | None


@dataclass(frozen=True, slots=True)
class CompareView:
    """Everything that `ffm compare` says.

    `old_s` and `new_s` are the times of the bare program, one for each measurement. `saved_s` is the difference of
    their medians, and `interval` that of the difference if there are enough of them. Sites are recognized by their call
    and the functions on their stack.
    """

    old: str
    new: str
    arguments: list[list[str]]
    """Those of both programs if they differ; otherwise empty."""
    inputs: list[str]
    """The files that both programs read from their standard input, if the contents differ; otherwise empty. None is an
    empty text.
    """
    old_s: list[float]
    new_s: list[float]
    saved_s: float
    interval: Interval | None
    gone: list[SiteChange]
    come: list[SiteChange]
    changed: list[SiteChange]
    """With problems before and after, but another number of them."""
    same: int
    estimated: Promise | None
    """None if no site is gone."""
    proved: bool
    """Whether these are sites with problems; of a single trace, they are all that wait, in quick mode or transfer."""


def _differing(old: list[str], new: list[str]) -> list[list[str]]:
    return [] if old == new else [old, new]


def _inputs(old: Run | None, new: Run | None) -> list[str]:
    contents = [run.stdin and run.stdin.sha256 for run in (old, new) if run is not None]
    return [stdin_of(old), stdin_of(new)] if len(set(contents)) > 1 else []


def compare(
    old: Results, new: Results, more_old_s: Sequence[float] = (), more_new_s: Sequence[float] = ()
) -> CompareView:
    """Compare two measurements; further times of the same programs give the difference an interval.

    Raises:
        DocumentError: The old results' timeline cannot be read.
        FfmError: One of them is of a single trace, which proves nothing, and the other is not.
    """
    before, after = old.document, new.document
    if before.proves != after.proves:
        raise FfmError(
            "one of these results is of quick mode or imported, which lists all that waits, and the other of what is "
            "not needed. Compare two of the same kind."
        )
    pairs = paired(
        [call_site(before, index) for index in _called(before)], [call_site(after, i) for i in _called(after)]
    )
    changes = [(first, second, _change(before, after, first, second)) for first, second in pairs]
    gone = [(first, change) for first, _, change in changes if change.old_count and not change.new_count]
    fixed = [first for first, _ in gone if first is not None]
    both = [change for _, _, change in changes if change.old_count and change.new_count]
    old_s, new_s = [before.wall_s, *more_old_s], [after.wall_s, *more_new_s]
    shift = shift_between(old_s, new_s)
    return CompareView(
        old=before.application,
        new=after.application,
        arguments=_differing(before.command[1:], after.command[1:]),
        inputs=_inputs(before.run, after.run),
        old_s=old_s,
        new_s=new_s,
        saved_s=median(old_s) - median(new_s),
        interval=None if shift is None else Interval(shift.low, shift.high, shift.confidence),
        gone=sorted((change for _, change in gone), key=lambda change: -change.old_seconds),
        come=sorted(
            (change for _, _, change in changes if change.new_count and not change.old_count),
            key=lambda change: -change.new_seconds,
        ),
        changed=sorted(
            (change for change in both if change.old_count != change.new_count),
            key=lambda change: -abs(change.old_seconds - change.new_seconds),
        ),
        same=sum(change.old_count == change.new_count for change in both),
        estimated=_promise(_together(old, fixed)) if fixed else None,
        proved=before.proves,
    )


def paired(old: Sequence[CallSite], new: Sequence[CallSite]) -> list[tuple[int | None, int | None]]:
    """Pair sites with the same call and functions, by index; those at the same line first, then in the order of lines.

    Sites without a counterpart are paired with None.
    """
    left: dict[tuple[str, tuple[str, ...]], list[CallSite]] = {}
    for site in sorted(new, key=_line):
        left.setdefault(_key(site), []).append(site)
    pairs: list[tuple[int | None, int | None]] = []
    moved: list[CallSite] = []
    for site in sorted(old, key=_line):
        same = next((one for one in left.get(_key(site), []) if _line(one) == _line(site)), None)
        if same is None:
            moved.append(site)
        else:
            left[_key(site)].remove(same)
            pairs.append((site.index, same.index))
    for site in moved:
        candidates = left.get(_key(site), [])
        pairs.append((site.index, candidates.pop(0).index if candidates else None))
    return pairs + [(None, site.index) for sites in left.values() for site in sites]


def _called(analysis: Analysis) -> list[int]:
    return [index for index, site in enumerate(analysis.sites) if site.count]


def _key(site: CallSite) -> tuple[str, tuple[str, ...]]:
    return site.identity.call, site.identity.functions


def _line(site: CallSite) -> tuple[str, int]:
    file, line = site.places[0]
    return PurePath(file).name, line


def _together(old: Results, sites: list[int]) -> Benefit:
    if not old.document.proves:
        return old.presumed.of_sites([sites])[0]
    return benefits_of_sites(old, [sites])[0]


def _calls(analysis: Analysis, index: int | None) -> tuple[int, float]:
    """Return how many calls of a site have a problem, and what they are worth; or wait or transfer, if nothing is
    proved. Of a profiler's trace, only the sites that wait longest have been tried.
    """
    if index is None:
        return 0, 0.0
    if analysis.proves:
        return analysis.sites[index].problem_count, analysis.sites[index].benefit.expected_s
    wait = next((one for one in analysis.unproved if one.site == index), None)
    if wait is not None:
        return wait.occurrences, wait.saving_s
    site = analysis.sites[index]
    return (site.count, 0.0) if site.wait_s > 0 and site.kind != "other" else (0, 0.0)


def _change(before: Analysis, after: Analysis, first: int | None, second: int | None) -> SiteChange:
    (old_count, old_s), (new_count, new_s) = _calls(before, first), _calls(after, second)
    where = place(after, second) if second is not None else place(before, first or 0)
    return SiteChange(
        place=where.place,
        call=where.call,
        file=where.file,
        line=where.line,
        old_site=None if first is None else first + 1,
        new_site=None if second is None else second + 1,
        old_count=old_count,
        new_count=new_count,
        old_seconds=old_s,
        new_seconds=new_s,
    )


def _promise(benefit: Benefit) -> Promise:
    return Promise(benefit.expected_s, benefit.low_s, benefit.high_s)
