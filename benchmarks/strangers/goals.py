"""What the goals ask of programs of others: estimates that hold, corrections that never cost, runs that stay as they
are.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

Record = dict[str, Any]

LEAST_SHARE = 0.01
"""The share of the run that an estimate must reach to be compared with what was saved."""


def goals(records: list[Record]) -> list[tuple[str, str]]:
    """Return what each goal is about, how many programs meet it, and for how many it can be decided."""
    measured = [record for record in records if "stages" in record and not record["stages"].get("unused")]
    compared = [record for record in records if "saving_s" in record.get("corrected", {})]
    named = [record for record in compared if record["corrected"].get("named")]
    corrected = [record for record in compared if not record["corrected"].get("named")]
    estimated = [record for record in corrected if is_estimated(record)]
    factors = sorted(factor for factor in map(memory_factor, measured) if factor is not None)

    def share(test: Callable[[Record], bool], among: list[Record]) -> str:
        return f"{sum(map(test, among))} of {len(among)}"

    return [
        ("the interval of what is expected holds the saving (estimates of 1 % or more)", share(holds, estimated)),
        ("... or the interval of the measured saving meets it", share(meets, estimated)),
        ("corrected and slower, beyond what runs differ by", share(is_slower, corrected)),
        ("corrected and faster, beyond what runs differ by", share(is_faster, corrected)),
        ("slower where only asked for by name, with the time that being corrected takes", share(is_slower, named)),
        ("the corrected program ends or writes otherwise", share(breaks, compared)),
        ("a stage crashes, hangs or changes the program", share(changes, measured)),
        ("memory stage, worst factor", f"{factors[-1]:.2f}" if factors else "not measured"),
        ("memory stage, median factor", f"{factors[len(factors) // 2]:.2f}" if factors else "not measured"),
    ]


def is_estimated(record: Record) -> bool:
    """Return whether the estimate of what was corrected is large enough to be compared."""
    corrected = record["corrected"]
    return bool(corrected["estimate_s"] >= LEAST_SHARE * corrected["bare_s"])


def interval(record: Record) -> tuple[float | None, float | None]:
    """Return the interval of what the corrections are expected to save: the estimate less what correcting costs."""
    expected = record["corrected"]["expected"]
    return expected["low_s"], expected["high_s"]


def holds(record: Record) -> bool:
    """Return whether the interval of what the corrections are expected to save holds the median saving."""
    low, high = interval(record)
    return low is not None and high is not None and low <= record["corrected"]["saving_s"] <= high


def meets(record: Record) -> bool:
    """Return whether the interval of what is expected has a point in common with that of the saving."""
    low, high = interval(record)
    saved = record["corrected"]["saving_interval"]
    if saved is None or low is None or high is None:
        return holds(record)
    return holds(record) or bool(low <= saved["high"] and saved["low"] <= high)


def is_slower(record: Record) -> bool:
    """Return whether the corrected program is certain to take longer."""
    saved = record["corrected"]["saving_interval"]
    return saved is not None and saved["high"] < 0


def is_faster(record: Record) -> bool:
    """Return whether the corrected program is certain to take less time."""
    saved = record["corrected"]["saving_interval"]
    return saved is not None and saved["low"] > 0


def breaks(record: Record) -> bool:
    """Return whether correcting changed what the program did."""
    return not record["corrected"]["ok"]


def changes(record: Record) -> bool:
    """Return whether measuring changed what the program did."""
    return not record["stages"]["ok"] or bool(record["stages"]["changed"])


def memory_factor(record: Record) -> float | None:
    """Return how many times as long as the bare program the memory stage took; None if it was not measured."""
    factor = record["stages"]["costs"].get("memory")
    return None if factor is None else float(factor)
