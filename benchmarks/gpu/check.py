"""Runs all checks on this machine's GPU: `python benchmarks/gpu/check.py OUTPUT_FOLDER`; see check.sh."""

from __future__ import annotations

import argparse
import json
import signal
import sys
import time
import traceback
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from common.machine import Others, description, watch_others
from driver_steps import check_doctor, check_facts, check_waiting, keep_awake
from machine_steps import check_machine, check_packages
from measured import measure_samples, measure_targets
from planted import check_planted
from programs import Build
from steps import FailedStep, Machine, Row, SkippedStep

from ffm.vgpu.paths import library_folder

SECONDS = 520.0
"""For all steps together: less than nine minutes, including what comes before and after them."""


BEFORE_OTHERS = ("machine", "packages", "doctor")
"""Steps that determine what is there; background work starts after them."""


@dataclass(slots=True)
class Report:
    """The findings so far; written after each row, so that an interrupted check keeps them."""

    head: dict[str, Any]
    output: Path
    steps: dict[str, dict[str, Any]] = field(default_factory=dict)

    def write(self, machine: Machine) -> None:
        """Write `check.json` and `check.txt`."""
        self.head |= {"device": machine.device, "driver": machine.driver, "architecture": machine.architecture}
        (self.output / "check.json").write_text(json.dumps({**self.head, "steps": self.steps}, indent=1) + "\n")
        (self.output / "check.txt").write_text(f"{self._title()}\n\n" + "\n".join(self._tables()))

    def failed(self) -> list[str]:
        """Return the names of the steps in which something failed."""
        return [name for name, step in self.steps.items() if step["state"] == "failed"]

    def summary(self) -> str:
        """Return one line per step."""
        lines = []
        for name, step in self.steps.items():
            wrong = sum(row["good"] is False for row in step["rows"])
            good = sum(row["good"] is True for row in step["rows"])
            lines.append(f"{name:9} {step['state']:8} {good:4} ok {wrong:4} failed  [{step['seconds']:.0f} s]")
        return "\n".join([self._title(), *lines])

    def _title(self) -> str:
        words = (self.head["date"], self.head["device"] or "no GPU", self.head["driver"] or "no driver")
        return "  ".join((*words, f"ffm {self.head['versions']['ffm']}"))

    def _tables(self) -> Iterator[str]:
        for name, step in self.steps.items():
            yield f"{name}: {step['state']} [{step['seconds']:.0f} s]\n"
            yield from (f"{line(row)}\n" for row in step["rows"])


def line(row: dict[str, Any]) -> str:
    """Return a row as a line of text."""
    mark = {True: "ok", False: "FAILED", None: "-"}[row["good"]]
    return f"  {mark:6}  {row['subject']:34}  {row['says']}"


Step = Callable[[Machine], Iterator[Row]]


def steps_of(build: Build) -> dict[str, tuple[Step, float, float]]:
    """Return each step, the seconds that it may take, and the seconds to reserve for those after it.

    The most valuable steps come first. Programs are compiled in parallel with steps that measure no times.
    """
    return {
        "machine": (check_machine, 20, 0),
        "packages": (check_packages, 30, 0),
        "doctor": (check_doctor, 120, 0),
        "facts": (check_facts, 30, 0),
        "waiting": (check_waiting, 40, 0),
        "build": (build.results, 90, 0),
        "samples": (measure_samples, 200, 120),
        "targets": (measure_targets, 170, 70),
        "planted": (check_planted, 400, 0),
    }


def main() -> int:
    """Run the steps and write their findings; return 0 if nothing failed."""
    arguments = _arguments()
    output: Path = arguments.output.resolve()
    output.mkdir(parents=True, exist_ok=True)
    signal.signal(
        signal.SIGTERM, lambda *_: sys.exit("check.py: stopped from outside; the findings so far are written")
    )
    end = time.monotonic() + arguments.seconds
    machine = Machine(output, arguments.virtual, end)
    machine.work.mkdir(exist_ok=True)
    if arguments.virtual:
        library = library_folder()
        machine.driver = str(library / "libcuda.so.1")
        machine.environment["LD_LIBRARY_PATH"] = str(library)
    chosen = set(filter(None, arguments.only.split(",")))
    head = description(arguments, Others())
    if arguments.commit:
        head["versions"]["ffm"] = arguments.commit
    report = Report({**head, "virtual": arguments.virtual}, output)
    build = Build(chosen)
    steps = steps_of(build)
    if chosen - set(steps):
        raise SystemExit(f"check.py: there is no step {', '.join(sorted(chosen - set(steps)))}")
    with watch_others() as others:
        _carry_out_all(steps, chosen, build, machine, report, end)
    report.head["others_cores"] = others.cores
    report.write(machine)
    print(report.summary())
    print(f"written: {output / 'check.json'}, {output / 'check.txt'}")
    return 1 if report.failed() else 0


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description="Check ffm on this machine's GPU.")
    parser.add_argument("output", type=Path)
    parser.add_argument("--virtual", action="store_true", help="run the same steps on the virtual GPU")
    parser.add_argument("--seconds", type=float, default=SECONDS, help="for all steps together")
    parser.add_argument("--only", default="", help="steps, separated by commas")
    parser.add_argument("--commit", default="", help="commit of the sources, if this is a copy without git")
    return parser.parse_args()


def _carry_out_all(
    steps: dict[str, tuple[Step, float, float]],
    chosen: set[str],
    build: Build,
    machine: Machine,
    report: Report,
    end: float,
) -> None:
    """Run the chosen steps, or all, in order until `end`, on the clock `time.monotonic`."""
    awake = False
    for name, (step, seconds, reserved) in steps.items():
        if chosen and name not in chosen and not (name == "build" and chosen & {"samples", "planted"}):
            continue
        build.start(machine)
        if name not in BEFORE_OTHERS and not awake:
            keep_awake(machine)
            build.warm(machine)
            awake = True
        # A step that is chosen alone may use all the time.
        machine.deadline = end if len(chosen) == 1 else min(end - reserved, time.monotonic() + seconds)
        _carry_out(name, step, machine, report)


def _carry_out(name: str, step: Step, machine: Machine, report: Report) -> None:
    """Run one step; whatever happens in it, the others continue."""
    began = time.monotonic()
    rows: list[dict[str, Any]] = []
    entry: dict[str, Any] = {"state": "running", "seconds": 0.0, "rows": rows}
    report.steps[name] = entry
    print(f"{name}:", flush=True)

    def add(row: Row) -> None:
        rows.append(asdict(row))
        entry["seconds"] = round(time.monotonic() - began, 1)
        print(line(rows[-1]), flush=True)
        report.write(machine)

    try:
        for row in step(machine):
            add(row)
    except SkippedStep as reason:
        entry["state"] = "skipped"
        add(Row("skipped", None, str(reason)))
    except FailedStep as reason:
        add(Row("failed", False, str(reason)))
    except Exception as error:
        where = traceback.extract_tb(error.__traceback__)[-1]
        add(Row("failed", False, f"{error!r} ({Path(where.filename).name}:{where.lineno})"))
    if entry["state"] == "running":
        entry["state"] = "failed" if any(row["good"] is False for row in rows) else "passed"
    entry["seconds"] = round(time.monotonic() - began, 1)
    report.write(machine)
    print(f"{name}: {entry['state']} [{entry['seconds']:.0f} s]\n", flush=True)


if __name__ == "__main__":
    sys.exit(main())
