"""The model again, slow and simple: `carry` second by second, sequences with lists and dictionaries."""

from __future__ import annotations

from dataclasses import replace
from itertools import groupby

from ffm.model.timeline import Kind
from tests.model.timelines import DUPLICATE, MISPLACED, UNNECESSARY, Row


def synchronizes(row: Row) -> bool:
    return row.wait > 0 or row.kind == Kind.SYNCHRONIZATION or bool(row.problem & (UNNECESSARY | MISPLACED))


def carry(rows: list[Row], selected: list[bool], copy_time: list[int] | None = None) -> int:
    """Simulate each thread second by second; see `ffm.model.estimators.carry` for the rules."""
    chosen = list(zip(rows, selected, strict=True))
    return sum(_thread(list(part), copy_time) for _, part in groupby(chosen, key=lambda pair: pair[0].thread))


def _thread(rows: list[tuple[Row, bool]], copy_time: list[int] | None) -> int:
    saved = now = 0
    carried = 0  # wait of removed synchronizations that no work has absorbed yet
    moved, until = 0, 0  # wait of moved synchronizations, and the time of their first use

    def live(seconds: int, *, works: bool) -> None:
        nonlocal saved, now, carried, moved
        for _ in range(seconds):
            if moved and now < until:
                moved -= 1
                saved += 1
            elif works and carried:
                carried -= 1
                saved += 1
            now += 1

    for row, selected in rows:
        unnecessary = selected and bool(row.problem & UNNECESSARY)
        misplaced = selected and bool(row.problem & MISPLACED) and not unnecessary
        synchronizing = synchronizes(row)
        if copy_time and selected and row.problem & DUPLICATE:
            copied = min(row.wait, copy_time[row.site])
            row = replace(row, own=row.own + copied, wait=row.wait - copied)
        call_goes = selected and (bool(row.problem & DUPLICATE) or (unnecessary and row.kind == Kind.FREE))

        def own(row: Row = row, call_goes: bool = call_goes) -> None:
            nonlocal saved, now
            if call_goes:
                saved += row.own
                now += row.own
            else:
                live(row.own, works=True)

        if row.kind != Kind.FREE:
            own()
        if synchronizing:
            if unnecessary:
                carried += row.wait
                now += row.wait
            elif misplaced:
                now += row.wait
                moved = min(moved, max(until - now, 0)) + carried + row.wait
                until = max(until, now + row.first_use)
                carried = 0
            else:
                carried = 0
                live(row.wait, works=False)
        if row.kind == Kind.FREE:
            own()
        live(row.gap, works=True)
    return saved + min(moved, max(until - now, 0))


def sequences(rows: list[Row]) -> dict[tuple[int, ...], tuple[int, list[int]]]:
    """For each ordered tuple of distinct sites: how often it recurs, and each line's count."""
    found: dict[tuple[int, ...], tuple[int, list[int]]] = {}
    for _, part in groupby(rows, key=lambda row: row.thread):
        instance: list[Row] = []
        for row in [*part, None]:
            ends = row is None or (synchronizes(row) and not row.problem & UNNECESSARY)
            if ends and instance:
                key = tuple(dict.fromkeys(member.site for member in instance))
                recurrences, counts = found.get(key, (0, [0] * len(key)))
                for member in instance:
                    counts[key.index(member.site)] += member.occurrences
                found[key] = (recurrences + 1, counts)
                instance = []
            if row is not None and row.problem:
                instance.append(row)
    return found


def next_traced(rows: list[Row], index: int) -> int:
    """Seconds from an operation's end to the thread's next synchronizing or transferring one, or to its end."""
    seconds = rows[index].gap
    for row in rows[index + 1 :]:
        if row.thread != rows[index].thread or synchronizes(row) or row.kind == Kind.TRANSFER:
            break
        seconds += row.own + row.wait + row.gap
    return seconds
