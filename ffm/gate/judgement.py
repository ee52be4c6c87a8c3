"""Whether a run passes the gate."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from ffm.gate.baseline import KnownSites, new_sites
from ffm.gate.iterations import IteratedRun
from ffm.gate.problems import ProblemCalls
from ffm.gate.rules import Allowed, Rules


@dataclass(frozen=True, slots=True)
class TooMany:
    """More calls on one thread than an entry of the allow-list allows; `calls` are all that it matches there."""

    entry: Allowed
    calls: list[ProblemCalls]
    count: int
    """On the thread, or in one of its iterations."""
    allowed: int
    by_iteration: bool


@dataclass(frozen=True, slots=True)
class Exceeded:
    """A limit, by its key, what it allows, and what there is."""

    limit: str
    allowed: float
    found: float


@dataclass(frozen=True, slots=True)
class Judgement:
    """What the gate found. Lists of calls are in the order in which they were given."""

    new: list[ProblemCalls]
    """Neither allowed nor known. They violate the rules if there are no limits, or one is exceeded."""
    too_many: list[TooMany]
    exceeded: list[Exceeded]
    allowed: list[tuple[ProblemCalls, Allowed]]
    known: list[ProblemCalls]
    """In the baseline."""
    unused: list[Allowed]
    """Entries of the allow-list that match nothing."""
    gone: int
    """Sites of the baseline that have no problem any more."""
    tolerated: bool
    """Whether there are limits, and none is exceeded."""

    @property
    def passed(self) -> bool:
        """Whether nothing violates the rules."""
        return not self.too_many and not self.exceeded and (self.tolerated or not self.new)


def judge(
    calls: Sequence[ProblemCalls],
    rules: Rules,
    known: Sequence[KnownSites] | None,
    together_s: Callable[[list[int]], float],
    wall_s: float,
    iterated: IteratedRun | None = None,
) -> Judgement:
    """Judge the calls of a run.

    Args:
        calls: those with problems.
        rules: what is allowed. The first entry that matches a site counts.
        known: the baseline, if there is one.
        together_s: returns what fixing some sites together saves, in seconds, by their indices.
        wall_s: the run's time, for limits in percent.
        iterated: its iterations; needed if the rules count by them.
    """
    by_entry: dict[int, list[ProblemCalls]] = {}
    others: list[ProblemCalls] = []
    for one in calls:
        entry = next((number for number, entry in enumerate(rules.allow) if entry.matches(one.site)), None)
        (others if entry is None else by_entry.setdefault(entry, [])).append(one)
    too_many = [
        found for number, group in by_entry.items() for found in _too_many(rules.allow[number], group, iterated)
    ]
    refused = {id(one) for found in too_many for one in found.calls}
    sites = list({one.site.index: one.site for one in others}.values())
    unknown, gone = (sites, 0) if known is None else new_sites(sites, known)
    indices = {site.index for site in unknown}
    new = [one for one in others if one.site.index in indices]
    exceeded = _exceeded(rules, sorted(indices), together_s, wall_s, iterated)
    return Judgement(
        new=new,
        too_many=too_many,
        exceeded=exceeded,
        allowed=[
            (one, rules.allow[number]) for number, group in by_entry.items() for one in group if id(one) not in refused
        ],
        known=[one for one in others if one.site.index not in indices],
        unused=[entry for number, entry in enumerate(rules.allow) if number not in by_entry],
        gone=gone,
        tolerated=not rules.limits.none and not exceeded,
    )


def _too_many(entry: Allowed, calls: list[ProblemCalls], iterated: IteratedRun | None) -> list[TooMany]:
    threads: dict[int, list[ProblemCalls]] = {}
    for one in calls:
        threads.setdefault(one.thread, []).append(one)
    found = []
    for thread, group in threads.items():
        count = sum(one.count for one in group)
        if entry.count is not None and count > entry.count:
            found.append(TooMany(entry, group, count, entry.count, by_iteration=False))
        elif entry.count_per_iteration is not None and iterated is not None:
            most = iterated.most({one.site.index for one in group}).get(thread, 0)
            if most > entry.count_per_iteration:
                found.append(TooMany(entry, group, most, entry.count_per_iteration, by_iteration=True))
    return found


def _exceeded(
    rules: Rules,
    sites: list[int],
    together_s: Callable[[list[int]], float],
    wall_s: float,
    iterated: IteratedRun | None,
) -> list[Exceeded]:
    limits = rules.limits
    timed = limits.unnecessary_seconds is not None or limits.unnecessary_percent is not None
    seconds = together_s(sites) if timed and sites else 0.0
    found = {
        "new_sites": float(len(sites)),
        "unnecessary_seconds": seconds,
        "unnecessary_percent": 100 * seconds / wall_s if wall_s > 0 else 0.0,
        "waits_per_iteration": max((one.waits.most for one in iterated.threads), default=0.0) if iterated else 0.0,
    }
    return [
        Exceeded(name, allowed, value)
        for name, value in found.items()
        if (allowed := getattr(limits, name)) is not None and value > allowed
    ]
