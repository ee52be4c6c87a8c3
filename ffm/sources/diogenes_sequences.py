"""The sequences that Diogenes's script follows through a trace, from what is left of the trace: how often each record
was executed, in the order in which they first were.

The script (`SequentialDump.py`) starts at each record in turn, goes on with each operation of the trace until one whose
data was used, and starts again at the next execution of its first record. It stops, too, where a record occurs more
often than its total: what it counts of each record, it counts once. Of two sequences one of which contains all records
of the other, it lists the one with more seconds. Here, `turns` of a sequence is how often it starts.

- Neighbours with equal counts were executed in turn.
- A record with a lower count than both of its neighbours, which have equal ones, was executed in some of the turns.
  Once that many have passed, the sequence ends at it. By then, the record after it followed it in as many of them as
  are its share; the trace would tell the exact number.
- A record with a higher count was executed in each turn, and elsewhere as well. Of the sequences that share it, one has
  it here: that with most of its executions.
- If the records before a group, after it, and behind those have the counts a, b and a, and the group has a more than
  the last of those after it, it is the condition of a loop: executed before the loop, and after each turn. What is
  started in the condition goes on in the loop's body, or behind the loop, until the body's first record is used up. The
  body's last records lead back to the condition, and those before the loop into it: the script does not list these
  sequences, because the loop's own contains the same records.

How many of the executions behind a loop come before the body's first record is used up, only the trace shows.
Diogenes's own list of sequences shows it, too: it is the one whole number with which the loop's seconds are among those
listed. If no number gives such seconds, the loop's sequence was left out, for another one or as too short, and one end
is taken. Without a list, as many are taken as if the loops were alike.
"""

from __future__ import annotations

import bisect
from collections.abc import Callable
from dataclasses import dataclass, field
from itertools import pairwise

Seconds = Callable[[list[int], list[int]], float]
"""Seconds that a sequence saves: its records, and how many executions of each count."""

SAME_SECONDS = 1e-6
"""How far apart two sums of the same seconds can be, which were added up in another order: 10^7 terms of 16 digits."""


@dataclass(slots=True)
class Counted:
    """A sequence: its records, how many of each one's executions are part of it, and the record that ends it."""

    sites: list[int] = field(default_factory=list)
    times: list[int] = field(default_factory=list)
    ends_at: int | None = None


@dataclass(frozen=True, slots=True)
class _Loop:
    """Records of a loop: its condition, `condition` to `body` - 1, and its body, `body` to `after` - 1."""

    condition: int
    body: int
    after: int


def find_counted(
    counts: list[int], stops: Callable[[int], bool], seconds: Seconds, listed: list[float] | None = None
) -> list[Counted]:
    """Return the sequences of records, given how often each was executed, in the order of their start. None share
    records.

    Args:
        counts: of each record, in program order; 0 for one that belongs to no sequence.
        stops: whether a record ends a sequence, and belongs to none.
        seconds: what a sequence saves.
        listed: seconds of the sequences that Diogenes listed; None if its list is not at hand.
    """
    found: list[Counted] = []
    loops = _loops(counts)
    site = 1
    while site < len(counts):
        if site in loops:
            site += 1
            continue
        sequence, end = _follow(counts, stops, site)
        led = any(end in (loop.condition, loop.after) for loop in loops.values())
        if sequence.sites and not (led and sequence.ends_at is None):
            found.append(sequence)
        site = max(end, site + 1)
    known = [seconds(sequence.sites, sequence.times) for sequence in found]
    left = None if listed is None else [one for one in listed if not any(abs(one - other) < 1e-3 for other in known)]
    found += [_of_loop(counts, stops, loop, seconds, left) for loop in loops.values()]
    listing = _not_contained([sequence for sequence in found if sequence.sites], seconds)
    return sorted(listing, key=lambda sequence: sequence.sites[0])


def _not_contained(found: list[Counted], seconds: Seconds) -> list[Counted]:
    """Return the sequences without those that contain another one with more seconds, or are contained in such a one."""
    ranked = sorted(found, key=lambda sequence: seconds(sequence.sites, sequence.times), reverse=True)
    members = [set(sequence.sites) for sequence in ranked]
    kept: list[Counted] = []
    taken: set[int] = set()
    for place, sequence in enumerate(ranked):
        own = members[place]
        if any(own <= other or own >= other for other in members[:place]) or own & taken:
            continue
        kept.append(sequence)
        taken |= own
    return kept


def _follow(counts: list[int], stops: Callable[[int], bool], first: int) -> tuple[Counted, int]:
    """Return the sequence that starts at a record, if one does, and the record at which it stops."""
    turns = counts[first - 1]
    sequence = Counted()
    limit, share = turns, 1.0
    for site in range(first, len(counts)):
        count = counts[site]
        sometimes = count < turns and site + 1 < len(counts) and counts[site + 1] == turns
        shared = turns < count < 2 * turns and bool(sequence.sites) and _stops_within(counts, stops, site)
        if not count or not turns or not (count == turns or sometimes or shared):
            return sequence, site
        if stops(site):
            sequence.ends_at = site
            return sequence, site
        limit = min(limit, count)
        sequence.sites.append(site)
        sequence.times.append(round(limit * share))
        share = count / turns if sometimes else 1.0
    return sequence, len(counts)


def _stops_within(counts: list[int], stops: Callable[[int], bool], site: int) -> bool:
    """Return whether one of the records that are executed as often as this one, from it on, ends a sequence."""
    return counts[_first_stop(counts, stops, site)] == counts[site]


def _first_stop(counts: list[int], stops: Callable[[int], bool], site: int) -> int:
    """Return the first record, from this one on, that ends a sequence or has another count; the last if none does."""
    for place in range(site, len(counts)):
        if stops(place) or counts[place] != counts[site]:
            return place
    return len(counts) - 1


def _loops(counts: list[int]) -> dict[int, _Loop]:
    """Return the loops by the first record of their condition."""
    begins = [site for site in range(1, len(counts)) if counts[site] != counts[site - 1]]
    found = {}
    for condition, body in pairwise(begins):
        around = counts[condition - 1]
        after = next((site for site in range(body, len(counts)) if counts[site] in (0, around)), len(counts))
        if body < after < len(counts) and 0 < around < counts[condition] == counts[after] + counts[after - 1]:
            found[condition] = _Loop(condition, body, after)
    return found


def _of_loop(
    counts: list[int], stops: Callable[[int], bool], loop: _Loop, seconds: Seconds, listed: list[float] | None
) -> Counted:
    """Return the sequence that starts in a loop's condition; nothing if one of its ways does not end."""
    turns = counts[loop.body]
    in_body, behind = (_first_stop(counts, stops, site + 1) for site in (loop.body, loop.after))
    if counts[in_body] != turns or counts[behind] != counts[loop.after] or stops(loop.body) or stops(loop.after):
        return Counted()
    stopped = max((site for site in range(loop.condition, loop.body) if stops(site)), default=loop.condition)
    lead = range(stopped + 1, loop.body)
    body, rest = range(loop.body + 1, in_body), range(loop.after + 1, behind)

    def with_ends(ends: int) -> Counted:
        """Return the sequence if this many loops end before the body's first record is used up."""
        times = dict.fromkeys(lead, counts[loop.condition]) | {loop.body: turns}
        times |= dict.fromkeys(body, turns - ends) | dict.fromkeys(rest, ends)
        return Counted(list(times), list(times.values()), behind)

    if listed is None:
        return with_ends(turns - round(turns * turns / counts[loop.condition]))
    return with_ends(_ends_as_listed(with_ends, min(counts[loop.after], turns), seconds, listed))


def _ends_as_listed(with_ends: Callable[[int], Counted], most: int, seconds: Seconds, listed: list[float]) -> int:
    """Return the number of ends, from 1 to `most`, that gives seconds which are listed; 1 if none does.

    A sequence saves the lesser of two sums, each of which changes by the same with each end. So its seconds rise, and
    then fall.
    """

    def saved(ends: int) -> float:
        sequence = with_ends(ends)
        return seconds(sequence.sites, sequence.times)

    top = bisect.bisect_left(range(1, most), x=True, key=lambda ends: saved(ends + 1) <= saved(ends)) + 1
    for wanted in listed:
        rising = bisect.bisect_left(range(1, top + 1), wanted - SAME_SECONDS, key=saved) + 1
        falling = bisect.bisect_left(range(top, most + 1), -SAME_SECONDS - wanted, key=lambda ends: -saved(ends)) + top
        for ends in (rising, falling):
            if ends <= most and abs(saved(ends) - wanted) < SAME_SECONDS:
                return ends
    return 1
