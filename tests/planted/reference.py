"""Which waits of a script are needed, from the definitions in docs/architecture.md#synchronizations, slowly.

The order of events decides. A piece of GPU work comes after another if the stream, the legacy default stream, or an
event orders them, and after everything covered by a wait that ended before the work was enqueued. What the CPU does
comes after what waits have covered. A program relies on its waits for these orders:

- the CPU's first access to a download's destination, and its first write to an upload's source, after them;
- work on one stream after earlier work on another;
- a query for the time between two events after both.

Waits are jointly unnecessary if all these orders hold without them.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass, field

from tests.planted.scripts import BLOCKING, LEGACY, MARKS, WAITS, WORKS, Script, Step

Rows = frozenset[int]
"""Steps, by their index in the script."""


@dataclass(frozen=True, slots=True)
class Reliance:
    """The program relies on `earlier` being done when it comes to `later`."""

    earlier: int
    later: int
    access: bool
    """Whether `later` is an access of the CPU."""
    first: int = -1
    """The access before `later` that relied on the same; -1 if it is the first."""


@dataclass(slots=True)
class Orders:
    """What is known about a script when only some of its waits wait."""

    before: dict[int, Rows] = field(default_factory=dict)
    """For each work and mark: what it comes after, thanks to the GPU and the waits."""
    by_gpu: dict[int, Rows] = field(default_factory=dict)
    """The same without the waits since the previous work on the GPU was enqueued."""
    alone: dict[int, Rows] = field(default_factory=dict)
    """What it would come after thanks to the GPU alone, if no wait ever waited."""
    over: dict[int, Rows] = field(default_factory=dict)
    """For each step: what waits have covered when it begins."""
    covers: dict[int, Rows] = field(default_factory=dict)
    """For each step that waits, removed or not: what it waits for."""


def orders(script: Script, kept: Collection[int]) -> Orders:
    """Process the script, waiting only in the steps in `kept`."""
    found = Orders()
    over: Rows = frozenset()
    queues: dict[int, list[int]] = {}
    recorded: dict[int, int] = {}
    for row, step in enumerate(script):
        found.over[row] = over
        if step.operation in WORKS | MARKS:
            predecessors = _ahead(queues, step.stream)
            if step.operation == "order":
                predecessors = predecessors | {recorded[step.event]}
            found.by_gpu[row] = predecessors.union(*(_handed_on(earlier, script, found) for earlier in predecessors))
            found.alone[row] = predecessors.union(*(found.alone[earlier] for earlier in predecessors))
            found.before[row] = predecessors.union(over, *(found.before[earlier] for earlier in predecessors))
            queues.setdefault(step.stream, []).append(row)
            if step.operation == "record":
                recorded[step.event] = row
        if step.operation in WAITS:
            found.covers[row] = _covered(row, step, queues, recorded, found)
            if row in kept:
                over = over | found.covers[row]
    return found


def _handed_on(row: int, script: Script, found: Orders) -> Rows:
    """Return what comes before a successor because of this step: a mark is not work that relied on waits."""
    return found.before[row] if script[row].operation in WORKS else found.by_gpu[row]


def _ahead(queues: dict[int, list[int]], stream: int) -> Rows:
    """Return what was enqueued before, on the stream or on one that is ordered with it."""
    streams = {stream}
    if stream == LEGACY:
        streams.add(BLOCKING)
    if stream == BLOCKING:
        streams.add(LEGACY)
    return frozenset(row for number in streams for row in queues.get(number, ()))


def _covered(row: int, step: Step, queues: dict[int, list[int]], recorded: dict[int, int], found: Orders) -> Rows:
    if step.operation == "wait_device":
        waited = frozenset(number for queue in queues.values() for number in queue)
    elif step.operation == "wait_event":
        waited = frozenset({recorded[step.event]})
    elif step.operation == "wait_stream":
        # The legacy default stream stands for all blocking streams; any other only for itself.
        waited = _ahead(queues, LEGACY) if step.stream == LEGACY else frozenset(queues.get(step.stream, ()))
    else:
        waited = frozenset({row})
    return waited.union(*(found.alone[earlier] for earlier in waited))


def sound_script(steps: Script) -> Script:
    """Return the script without steps that would be errors: races, and events that were never recorded."""
    script: Script = []
    for step in steps:
        candidate = [*script, step]
        if _allowed(candidate):
            script = candidate
    return script


def _allowed(script: Script) -> bool:
    row, step = len(script) - 1, script[-1]
    recorded = {earlier.event: place for place, earlier in enumerate(script[:-1]) if earlier.operation == "record"}
    if step.operation in ("wait_event", "order"):
        return step.event in recorded
    known = orders(script, range(len(script)))
    if step.operation == "elapsed":
        return all(recorded.get(event, -1) in known.over[row] for event in (step.event, step.other))
    if step.operation in ("read", "write"):
        return all(
            place in known.over[row] for place in _transfers(script[:-1], step, writes=step.operation == "write")
        )
    if step.operation in WORKS - {"launch"}:
        writes = step.operation.startswith("download")
        return all(place in known.before[row] for place in _transfers(script[:-1], step, writes=writes))
    return True


def _transfers(script: Script, step: Step, *, writes: bool) -> list[int]:
    """Return the earlier transfers that conflict with a step that reads or writes its buffer."""
    return [
        place
        for place, earlier in enumerate(script)
        if earlier.operation in WORKS - {"launch"}
        and earlier.buffer == step.buffer
        and (writes or earlier.operation.startswith("download"))
    ]


def reliances(script: Script) -> list[Reliance]:
    """Return all orders that the script relies on and that the GPU alone does not keep."""
    known = orders(script, range(len(script)))
    found: list[Reliance] = []
    recorded: dict[int, int] = {}
    awaited: dict[int, Step] = {}
    for row, step in enumerate(script):
        if step.operation == "elapsed":
            found += [Reliance(recorded[event], row, access=True) for event in {step.event, step.other}]
        if step.operation == "record":
            recorded[step.event] = row
        if step.operation in WORKS:
            found += [
                Reliance(earlier, row, access=False)
                for earlier in known.before[row] - known.by_gpu[row]
                if script[earlier].operation in WORKS
            ]
        used = [place for place, transfer in awaited.items() if _uses(step, transfer)]
        found += [Reliance(place, row, access=True) for place in used if step.operation in ("read", "write")]
        for place in used:
            del awaited[place]
        if step.operation in WORKS - {"launch"}:
            awaited[row] = step
    return found


def _uses(step: Step, transfer: Step) -> bool:
    """Whether a step ends the watch of a transfer's memory: an access, or a download that overwrites it."""
    if step.buffer != transfer.buffer:
        return False
    if step.operation == "write" or step.operation in ("download", "download_now"):
        return True
    return step.operation == "read" and transfer.operation.startswith("download")


def broken(script: Script, kept: Collection[int], *, by_memory: bool = False) -> list[Reliance]:
    """Return what the script relies on but does not hold if only the waits in `kept` remain; nothing if all holds.

    With `by_memory`, it does not rely on the order of streams whose work has no memory in common.
    """
    whole, left = orders(script, range(len(script))), orders(script, kept)
    together = _streams_together(script) if by_memory else None
    found = [one for one in reliances(script) if one.access and one.earlier not in left.over[one.later]]
    for later, step in enumerate(script):
        if step.operation in WORKS:
            found += [
                Reliance(earlier, later, access=False)
                for earlier in whole.before[later] - left.before[later]
                if script[earlier].operation in WORKS
                and (together is None or (script[earlier].stream, step.stream) in together)
            ]
    return found


def _streams_together(script: Script) -> set[tuple[int, int]]:
    """Return the pairs of streams with memory that one writes and the other uses."""
    uses: set[tuple[str, int, bool]] = set()
    for step in script:
        device = f"scratch {step.stream}" if step.operation == "launch" else f"down {step.buffer}"
        if step.operation.startswith("upload"):
            device = f"up {step.stream} {step.buffer}"
        if step.operation in WORKS:
            uses.add((device, step.stream, not step.operation.startswith("download")))
        if step.operation in WORKS - {"launch"}:
            uses.add((f"host {step.buffer}", step.stream, step.operation.startswith("download")))
    return {
        pair
        for memory, stream, writes in uses
        for other, user, _ in uses
        if memory == other and writes
        for pair in ((stream, user), (user, stream))
    } | {(stream, stream) for _, stream, _ in uses}


def last_covers(script: Script) -> frozenset[int]:
    """Return the waits that are, for some order that the script relies on, their thread's last one before that keeps
    it.

    Only the script knows which thread hands over to which. For an access, the last wait of each thread that has waited
    for the transfer counts and, for a thread that waits after it, the next access. A synchronous transfer's own wait
    counts for itself as well: it is part of the call.
    """
    known = orders(script, range(len(script)))
    found: set[int] = set()
    for reliance in [*reliances(script), *_accesses_again(script)]:
        covering = [row for row in known.covers if row < reliance.later and reliance.earlier in known.covers[row]]
        earlier = [row for row in covering if row < reliance.first]
        threads = {script[row].thread for row in covering} - {script[row].thread for row in earlier}
        found |= {max(row for row in covering if script[row].thread == thread) for thread in threads}
        if reliance.earlier in known.covers:
            found.add(reliance.earlier)
    return frozenset(found)


def _accesses_again(script: Script) -> list[Reliance]:
    """Return the accesses to a transfer's memory after the first, until it is overwritten."""
    found: list[Reliance] = []
    for place, transfer in enumerate(script):
        previous = -1
        for row in range(place + 1, len(script) if transfer.operation in WORKS - {"launch"} else 0):
            if not _uses(script[row], transfer):
                continue
            if script[row].operation not in ("read", "write"):
                break
            if previous >= 0:
                found.append(Reliance(place, row, access=True, first=previous))
            previous = row
    return found


def protecting(script: Script, row: int) -> frozenset[int]:
    """Return the waits that cover what the wait in `row` covers; a record counts, because its time may be queried."""
    covers = orders(script, range(len(script))).covers
    works = {place for place in covers[row] if script[place].operation in WORKS | {"record"}}
    return frozenset(other for other in covers if works & covers[other])
