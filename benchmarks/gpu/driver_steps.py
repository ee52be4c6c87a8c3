"""What the driver allows and how it behaves; each check runs in its own process, to contain a driver's fault."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from steps import FailedStep, Machine, Row, last_line


def check_doctor(machine: Machine) -> Iterator[Row]:
    """Check driver, permissions, wait function, and the hooking table over every export and entry point."""
    arguments = ["doctor", "--probe", "--every-export", "--json"]
    if machine.driver:
        arguments += ["--driver", machine.driver]
    done = machine.run([sys.executable, "-m", "ffm", *arguments], 120)
    try:
        found = json.loads(done.stdout)
    except ValueError:
        raise FailedStep(last_line(done.stderr)) from None
    (machine.output / "doctor.json").write_text(done.stdout)
    examination = found["examination"]
    if examination:
        machine.driver = examination["path"]
        machine.device = examination["device"]
    if examination and examination["compute_capability"]:
        machine.architecture = "sm_{}{}".format(*examination["compute_capability"])
    for item in found["findings"]:
        yield Row(item["subject"], item["state"] != "missing", item["says"])
    wait = found["wait_function"]
    if wait:
        yield Row("wait function", wait["offset"] is not None, f"found in {wait['seconds']:.1f} s", wait)
    if examination:
        hooks = examination["hooks"]
        yield from (
            Row(hook["function"], hook["how"] != "failed", f"{hook['how']}: {hook['reason']}. {hook['lost']}")
            for hook in hooks
            if hook["how"] != "replace-fast"
        )
        bare = [point for point in examination["entry_points"] if not point["exports"]]
        asked = ", ".join(sorted({point["asked"] for point in bare})) or "none"
        count = len(examination["entry_points"])
        yield Row("entry points", None, f"{count}; exported under no name: {asked}")
    for trial in found["trials"] or []:
        if trial["how"] != "replace-fast":
            names = ", ".join(trial["names"]) or hex(trial["offset"])
            yield Row(names, trial["how"] != "failed", f"{trial['how']}: {trial['reason']}")


_KEEPER = "import ctypes, sys, time; ctypes.CDLL(sys.argv[1]).cuInit(0); time.sleep(3600)"


def keep_awake(machine: Machine) -> None:
    """Keep the driver in use until the check ends: without persistence mode, each first user waits for the GPU."""
    if not machine.virtual and machine.driver:
        machine.start([sys.executable, "-c", _KEEPER, machine.driver], subprocess.DEVNULL, subprocess.DEVNULL)


def check_waiting(machine: Machine) -> Iterator[Row]:
    """Check what the virtual GPU claims about waiting (docs/architecture.md#the-virtual-gpu), call by call."""
    for call, (waits, claimed) in _asked("waiting.py", machine):
        if isinstance(waits, str):
            yield Row(call, None, waits)
        else:
            says = "waits" if waits else "does not wait"
            yield Row(call, waits == claimed, says + ("" if waits == claimed else ", contrary to the claim"))


def check_facts(machine: Machine) -> Iterator[Row]:
    """Check what the collector relies on and only a driver can answer."""
    for subject, (good, says) in _asked("facts.py", machine):
        yield Row(subject, good, says)


def _asked(script: str, machine: Machine) -> Iterator[tuple[str, list[Any]]]:
    """Run a script that prints one JSON object per line, [subject, answer]; output before a failure counts."""
    command = [sys.executable, str(Path(__file__).with_name(script)), machine.driver or "libcuda.so.1"]
    done = machine.run(command, 60)
    for text in done.stdout.splitlines():
        subject, answer = json.loads(text)
        yield subject, answer
    if done.returncode:
        raise FailedStep(f"{script} ended with {done.returncode}: {last_line(done.stderr)}")
