"""The sequences that Diogenes's script follows through a trace, from what is left of the trace: how often each record
was executed, in the order in which they first were.

The script (`SequentialDump.py`) starts at each record in turn, goes on with each operation of the trace until one whose
data was used, and starts again at the next execution of its first record. It stops, too, where a record occurs more
often than its total: what it counts of each record, it counts once. Here, `turns` of a sequence is how often it starts.

- Neighbours with equal counts were executed in turn.
- A record with a lower count than both of its neighbours, which have equal ones, was executed in some of the turns.
  Once that many have passed, the sequence ends at it. By then, the record after it followed it in as many of them as
  are its share; the trace would tell the exact number.
- A record with a higher count was executed in each turn, and elsewhere as well. Of the sequences that share it, one has
  it here: that with most of its executions.
- If the records before a group, after it, and behind those have the counts a, b and a, and the group has a + b, it is
  the condition of a loop with b turns, executed a times. What is started in the condition goes on in the loop's body,
  or behind the loop. The body's last records lead back to the condition, and those before the loop into it: Diogenes
  does not list these sequences, because the loop's own contains the same records. How many of the executions behind the
  loop come before the body's first record is used up, only the trace shows: here, as many as if the loops were alike.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from itertools import pairwise


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


def find_counted(counts: list[int], stops: Callable[[int], bool]) -> list[Counted]:
    """Return the sequences of records that were executed so often, in the order of their begin.

    Args:
        counts: of each record, in program order; 0 for one that belongs to no sequence.
        stops: whether a record ends a sequence, and belongs to none.
    """
    found: list[Counted] = []
    loops = _loops(counts)
    taken: set[int] = set()
    for loop in loops.values():
        found.append(_of_loop(counts, stops, loop))
        taken.update(found[-1].sites)
    site = 1
    while site < len(counts):
        if site in taken or site in loops:
            site += 1
            continue
        sequence, end = _follow(counts, stops, site)
        led = any(end in (loop.condition, loop.after) for loop in loops.values())
        if sequence.sites and not (led and sequence.ends_at is None):
            found.append(sequence)
        site = max(end, site + 1)
    return sorted((sequence for sequence in found if sequence.sites), key=lambda sequence: sequence.sites[0])


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
        around, turns = counts[condition - 1], counts[body]
        if not 0 < around < turns or counts[condition] != around + turns:
            continue
        after = next((site for site in range(body, len(counts)) if not around < counts[site] <= turns), len(counts))
        if after < len(counts) and counts[after] == around:
            found[condition] = _Loop(condition, body, after)
    return found


def _of_loop(counts: list[int], stops: Callable[[int], bool], loop: _Loop) -> Counted:
    """Return the sequence of a loop; nothing if one of its ways does not end."""
    condition, turns = counts[loop.condition], counts[loop.body]
    in_body, behind = (_first_stop(counts, stops, site + 1) for site in (loop.body, loop.after))
    if counts[in_body] != turns or counts[behind] != counts[loop.after]:
        return Counted()
    again = round(turns * turns / condition)
    times = dict.fromkeys(range(loop.condition + 1, loop.body), condition)
    times |= {loop.body: turns} | dict.fromkeys(range(loop.body + 1, in_body), again)
    times |= dict.fromkeys(range(loop.after + 1, behind), turns - again)
    return Counted(list(times), list(times.values()), behind)
