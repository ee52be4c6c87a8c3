"""The table of all programs, and how many went how far."""

from __future__ import annotations

from typing import Any

from goals import goals, is_faster, is_slower, memory_factor
from rich.console import Console
from rich.table import Table


def show(records: list[dict[str, Any]]) -> None:
    """Print a line for each program, then the counts."""
    headers = (
        "program", "built", "bare", "own check", "stages", "memory x", "estimate", "saved", "output", "cause",
    )  # fmt: skip
    table = Table(title="Programs of others: seconds, and what went wrong")
    for header in headers:
        table.add_column(header, justify="right" if header in ("bare", "memory x", "estimate", "saved") else "left")
    for record in records:
        table.add_row(*_row(record))
    Console(width=200).print(table)
    for name, count in summary(records).items():
        print(f"{count:5} {name}")
    for name, told in goals(records):
        print(f"{told:>9} {name}")


def summary(records: list[dict[str, Any]]) -> dict[str, int]:
    """Return how many programs came how far."""
    bare = [record["bare"] for record in records if "bare" in record]
    stages = [record["stages"] for record in records if "stages" in record]
    corrected = [record["corrected"] for record in records if "corrected" in record]
    return {
        "programs": len(records),
        "need what is absent": sum(_absent(record) for record in records),
        "built": sum(record["build"]["ok"] for record in records),
        "run bare": len(bare),
        "end bare with status 0": sum(one["status"] == 0 for one in bare),
        "pass their own check, or have none, bare": sum(one["ok"] for one in bare),
        "measured": len(stages),
        "measured in all stages": sum(one["ok"] for one in stages),
        "measured with the same output": sum(one["ok"] and not one["changed"] for one in stages),
        "corrected, or nothing to correct": sum(one["ok"] for one in corrected),
        "corrected": sum(one["ok"] and "saving_s" in one for one in corrected),
        "pass their own check bare, in all stages and corrected": sum(map(_passes, records)),
    }


def _row(record: dict[str, Any]) -> list[str]:
    build, bare = record["build"], record.get("bare", {})
    stages, corrected = record.get("stages", {}), record.get("corrected", {})
    return [
        record["name"],
        "yes" if build["ok"] else "absent" if _absent(record) else "NO",
        f"{bare['seconds']:.2f}" if bare else "",
        bare.get("check", "").replace("failed", "FAILED"),
        ("changed" if stages["changed"] else "yes" if stages["ok"] else "NO") if stages else "",
        f"{memory_factor(record) or 0:.2f}" if stages else "",
        _interval(corrected if "saving_s" in corrected else stages),
        _saved(record) if "saving_s" in corrected else "nothing" if corrected.get("nothing") else "",
        ("same" if corrected["ok"] else "CHANGED") if corrected else "",
        next(filter(None, (part.get("cause") or _changed(part) for part in (build, bare, stages, corrected))), ""),
    ]


def _saved(record: dict[str, Any]) -> str:
    corrected = record["corrected"]
    told = "slower" if is_slower(record) else "faster" if is_faster(record) else ""
    asked = "named" if corrected.get("named") else ""
    return " ".join(filter(None, (f"{corrected['saving_s']:.3f} of {corrected['bare_s']:.3f}", told, asked)))


def _interval(part: dict[str, Any]) -> str:
    expected = part.get("expected")
    told, seconds = (part, part.get("estimate_s")) if expected is None else (expected, expected["seconds"])
    low, high = told.get("low_s"), told.get("high_s")
    if seconds is None:
        return ""
    bounds = "" if low is None or high is None else f" ({low:.3f} to {high:.3f})"
    return f"{seconds:.3f}{bounds}"


def _changed(part: dict[str, Any]) -> str:
    changes = part.get("changed") or {}
    return changes if isinstance(changes, str) else "; ".join(f"{stage}: {change}" for stage, change in changes.items())


def _passes(record: dict[str, Any]) -> bool:
    checks = [record.get("bare", {}).get("check"), *record.get("stages", {}).get("checks", {}).values()]
    corrected = record.get("corrected", {})
    checks += [] if "nothing" in corrected else [corrected.get("check")]
    return all(check == "passed" for check in checks)


def _absent(record: dict[str, Any]) -> bool:
    return str(record["build"].get("cause", "")).startswith("absent: ")
