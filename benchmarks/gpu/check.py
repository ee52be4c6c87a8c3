"""Runs all checks on this machine's GPU: `python benchmarks/gpu/check.py OUTPUT_FOLDER`; see check.sh."""

from __future__ import annotations

import argparse
import importlib
import json
import sys
import time
import traceback
from collections.abc import Callable
from dataclasses import asdict
from importlib.metadata import version
from pathlib import Path
from typing import Any

from machine import description
from measured import measure_samples, measure_targets
from steps import FailedStep, Machine, Row, SkippedStep, last_line

from ffm.vgpu.paths import library_folder

SECONDS = 520.0
"""For all steps together: less than nine minutes, with what comes before and after them."""

DISTRIBUTIONS = {"elftools": "pyelftools"}

NEEDED = ("click", "jinja2", "numba", "numpy", "pyarrow", "rich")
"""Packages that pack.sh leaves out because a machine for GPU programs has them."""


def check_packages(_: Machine) -> list[Row]:
    """What ffm imports must be there."""
    rows = []
    for name in (*NEEDED, "frida", "msgspec", "orjson", "platformdirs", "elftools", "capstone", "cffi"):
        try:
            importlib.import_module(name)
            rows.append(Row(name, True, version(DISTRIBUTIONS.get(name, name))))
        except ImportError as error:
            rows.append(Row(name, False, str(error)))
    return rows


def check_doctor(machine: Machine) -> list[Row]:
    """Driver, permissions, wait function, and the hooking table over every export and entry point."""
    arguments = ["doctor", "--probe", "--every-export", "--json"]
    if machine.driver:
        arguments += ["--driver", machine.driver]
    done = machine.run([sys.executable, "-m", "ffm", *arguments], 90)
    try:
        found = json.loads(done.stdout)
    except ValueError:
        raise FailedStep(last_line(done.stderr)) from None
    (machine.output / "doctor.json").write_text(done.stdout)
    examination = found["examination"]
    if examination and examination["compute_capability"]:
        machine.driver = examination["path"]
        machine.device = examination["device"]
        machine.architecture = "sm_{}{}".format(*examination["compute_capability"])
    rows = [Row(item["subject"], item["state"] != "missing", item["says"]) for item in found["findings"]]
    for trial in found["trials"] or []:
        if trial["how"] != "replace-fast":
            names = ", ".join(trial["names"]) or hex(trial["offset"])
            rows.append(Row(names, trial["how"] != "failed", f"{trial['how']}: {trial['reason']}"))
    return rows


def check_waiting(machine: Machine) -> list[Row]:
    """What the virtual GPU claims about waiting (design, section 9), call by call."""
    command = [sys.executable, str(Path(__file__).with_name("waiting.py")), machine.driver or "libcuda.so.1"]
    done = machine.run(command, 60)
    if done.returncode:
        raise FailedStep(last_line(done.stderr))
    rows = []
    for call, (waits, claimed) in json.loads(done.stdout).items():
        if isinstance(waits, str):
            rows.append(Row(call, None, waits))
        else:
            says = "waits" if waits else "does not wait"
            rows.append(Row(call, waits == claimed, says + ("" if waits == claimed else ", other than claimed")))
    return rows


def check_cases(machine: Machine) -> list[Row]:
    """The planted cases. They run ffm in this process, so that a missing package ends this step alone."""
    from planted import check_planted

    return check_planted(machine)


STEPS: dict[str, tuple[Callable[[Machine], list[Row]], float]] = {
    "packages": (check_packages, 20),
    "doctor": (check_doctor, 90),
    "waiting": (check_waiting, 60),
    "targets": (measure_targets, 190),
    "samples": (measure_samples, 150),
    "planted": (check_cases, 400),
}
"""Each step, and the seconds that it may take."""


def main() -> int:
    """Run the steps, write what they found after each; return 0 when nothing failed."""
    arguments = _arguments()
    output: Path = arguments.output.resolve()
    output.mkdir(parents=True, exist_ok=True)
    end = time.monotonic() + arguments.seconds
    machine = Machine(output, arguments.virtual, end)
    if arguments.virtual:
        library = library_folder()
        machine.driver = str(library / "libcuda.so.1")
        machine.environment["LD_LIBRARY_PATH"] = str(library)
    report: dict[str, Any] = {**description(), "virtual": arguments.virtual, "steps": {}}
    for name, (step, seconds) in STEPS.items():
        if arguments.only and name not in arguments.only.split(","):
            continue
        began = time.monotonic()
        machine.deadline = min(end, began + seconds)
        state, rows = _outcome(step, machine)
        report["steps"][name] = {
            "state": state,
            "seconds": round(time.monotonic() - began, 1),
            "rows": [asdict(row) for row in rows],
        }
        report |= {"device": machine.device, "driver": machine.driver, "architecture": machine.architecture}
        _write(report, output)
        print(_table(name, report["steps"][name]), flush=True)
    print(f"written: {output / 'check.json'}, {output / 'check.txt'}")
    return 1 if any(step["state"] == "failed" for step in report["steps"].values()) else 0


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description="Check ffm on this machine's GPU.")
    parser.add_argument("output", type=Path)
    parser.add_argument("--virtual", action="store_true", help="go the same way on the virtual GPU")
    parser.add_argument("--seconds", type=float, default=SECONDS, help="for all steps together")
    parser.add_argument("--only", default="", help="steps, separated by commas: " + ",".join(STEPS))
    return parser.parse_args()


def _outcome(step: Callable[[Machine], list[Row]], machine: Machine) -> tuple[str, list[Row]]:
    try:
        rows = step(machine)
    except SkippedStep as reason:
        return "skipped", [Row("skipped", None, str(reason))]
    except FailedStep as reason:
        return "failed", [Row("failed", False, str(reason))]
    except Exception as error:  # whatever it is, the other steps go on
        where = traceback.extract_tb(error.__traceback__)[-1]
        return "failed", [Row("failed", False, f"{error!r} ({Path(where.filename).name}:{where.lineno})")]
    return "failed" if any(row.good is False for row in rows) else "passed", rows


def _write(report: dict[str, Any], output: Path) -> None:
    (output / "check.json").write_text(json.dumps(report, indent=1) + "\n")
    words = (report["date"], report["device"] or "no GPU", report["driver"], f"ffm {report['versions']['ffm']}")
    head = "  ".join(words)
    tables = [_table(name, step) for name, step in report["steps"].items()]
    (output / "check.txt").write_text("\n".join([head, "", *tables]) + "\n")


def _table(name: str, step: dict[str, Any]) -> str:
    lines = [f"{name}: {step['state']} [{step['seconds']:.0f} s]"]
    for row in step["rows"]:
        mark = {True: "ok", False: "FAILED", None: "-"}[row["good"]]
        lines.append(f"  {mark:6}  {row['subject']:34}  {row['says']}")
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    sys.exit(main())
