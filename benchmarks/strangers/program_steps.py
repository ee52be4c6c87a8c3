"""The steps that a program goes through, each with what it found, as JSON values."""

from __future__ import annotations

import json
import os
import re
import sys
import time
from contextlib import nullcontext
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from common.machine import undisturbed
from outputs import first_difference, own_check
from processes import Ended, call, whole_lines
from scaling import LAST_LEVEL, scaled
from sources import Command, build, commands, copy
from suites import Suite
from suites import build as build_of_suite
from toolchain import Toolchain

from ffm.remedy.plan_file import Correction
from ffm.results.folder.paths import STAGES, ResultsFolder
from ffm.vgpu.paths import library_folder

STEPS = ("build", "bare", "stages", "corrected")
LONGEST_BUILD_S = 300.0
STAGE_FACTOR = 10.0
"""How much longer a stage may take than the limit of a bare run: the slowest stages are allowed to be slow."""

_ABSENT = re.compile(
    r"fatal error: (\S+): No such file|cannot find -l(\S+)|cannot open (?:source )?file \"(\S+)\"|"
    r"No rule to make target '(\.\./\S+)'"
)

_ENDED = re.compile(r"The program (?!writes).*; corrected, it ")
"""The difference that is not in the output."""

_UNUSED = re.compile(r"nothing to measure|before it used a CUDA driver")
"""What ffm says about programs that never use the GPU, for example because their input is missing."""

Found = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Place:
    """Where the checkout is and the work is done, and the seconds that one run of a program may take."""

    checkout: Path
    work: Path
    toolchain: Toolchain
    limit_s: float
    runs: int
    suite: Suite | None = None
    """What the checkout holds, if it is not laid out like HeCBench."""
    kernel_us: float | None = None
    """How long kernels last that then compute nothing, so that programs' own checks are not asked; None if they
    compute.
    """
    watch: str = "pages"
    """How the memory stage watches host memory."""
    first_level: int = 2
    """The size of the arguments that is tried first (`scaling`)."""
    real: bool = False
    """Whether programs run on this machine's own GPU."""

    @property
    def environment(self) -> dict[str, str]:
        """What programs find their libraries by, NVIDIA's runtime and the virtual GPU's driver, and its configuration.

        Raises:
            OSError: The configuration cannot be written.
        """
        driver = os.environ.get("LD_LIBRARY_PATH", "") if self.real else str(library_folder())
        found = {"LD_LIBRARY_PATH": ":".join(filter(None, (str(self.toolchain.libraries), driver)))}
        if self.kernel_us is None:
            return found
        configuration = self.work / "passing.vgpu"
        configuration.write_text(f"device.code = pass\nkernel.default = {self.kernel_us}\n")
        return found | {"VGPU_CONFIGURATION": str(configuration)}


def built(name: str, place: Place) -> Found:
    """Build a program, and read from its Makefile, or from the suite's file, how to run it."""
    if place.suite is not None:
        program = place.suite.programs[name]
        ended, command = build_of_suite(program, place.checkout, place.work / "src", place.toolchain, LONGEST_BUILD_S)
        return _built(ended, [command])
    folder = copy(place.checkout, name, place.work / "src")
    ended = build(folder, place.toolchain, LONGEST_BUILD_S)
    return _built(ended, commands(folder, place.toolchain) if ended.well else [])


def _built(ended: Ended, listed: list[Command]) -> Found:
    found: Found = {"ok": ended.well, "seconds": round(ended.seconds, 1)}
    if not ended.well:
        absent = _ABSENT.search(ended.output)
        found["cause"] = f"absent: {next(filter(None, absent.groups()))}" if absent else cause(ended)
        return found
    if not listed:
        return found | {"ok": False, "cause": "its Makefile has no target `run` that starts what was built"}
    return found | {"folder": str(listed[0].folder), "words": listed[0].words, "commands": len(listed)}


def bare(record: Found, place: Place) -> Found:
    """Run a program as it is, with the largest arguments that are tried and end in time."""
    command = Command(Path(record["build"]["folder"]), record["build"]["words"])
    tried: dict[int, Found] = {}
    level: int | None = place.first_level
    while level is not None:
        tried[level] = _run(command, level, place)
        if tried[level]["ok"]:
            break
        # Too large for the limit, or so small that the program does not work.
        level = _next(command.words, level, 1 if tried[level]["status"] is None else -1)
        if level in tried:
            break
    best = min(tried.values(), key=lambda found: (not found["ok"], found["status"] is None, -found["level"]))
    return {**best, "tried": sorted(tried)}


def _next(words: list[str], level: int, step: int) -> int | None:
    """Return the next level at which the arguments differ."""
    ahead = range(level + step, LAST_LEVEL + 1 if step > 0 else -1, step)
    return next((other for other in ahead if scaled(words[1:], other) != scaled(words[1:], level)), None)


def _run(command: Command, level: int, place: Place) -> Found:
    words = [command.words[0], *scaled(command.words[1:], level)]
    ended = call(words, command.folder, place.environment, place.limit_s)
    check = own_check(ended.status, ended.output)
    well = check != "failed" if place.kernel_us is None else ended.status is not None and ended.status >= 0
    return {
        "ok": well,
        "words": words,
        "level": level,
        "status": ended.status,
        "seconds": round(ended.seconds, 3),
        "check": check,
        "cause": "" if well else cause(ended),
        "output": ended.output,
    }


def stages(record: Found, place: Place) -> Found:
    """Measure a program in all stages; its own check and its output must be as they are without ffm."""
    found: Found = {"ok": True, "watch": place.watch, "seconds": {}, "costs": {}, "checks": {}, "changed": {}}
    folder = _results(record, place)
    for stage in STAGES:
        ends_with = ["--accept-status", str(record["bare"]["status"])]
        program = [] if stage == "analysis" else [*ends_with, "--", *record["bare"]["words"]]
        watch = ["--watch", place.watch] if stage == "memory" else []
        with undisturbed() if program else nullcontext():
            ended = _ffm(["stage", stage, *watch, "--results", str(folder), *program], record, place)
        found["seconds"][stage] = round(ended.seconds, 2)
        if not ended.well:
            unused = _UNUSED.search(ended.output) is not None
            return found | {"ok": False, "unused": unused, "cause": f"{stage}: {cause(ended)}"}
        if program:
            told = (folder / f"{stage}.log").read_text(errors="replace")
            found["checks"][stage] = own_check(record["bare"]["status"], told)
            changed = _difference(record, told, place)
            if changed:
                found["changed"][stage] = changed
    analysis = json.loads((folder / "analysis.json").read_bytes())
    everything = analysis["everything"] or {}
    return found | {
        "wall_s": analysis["wall_s"],
        "costs": {cost["stage"]: cost["ratio"] for cost in analysis["costs"]},
        "sites": sum(1 for site in analysis["sites"] if site["problem_count"]),
        "estimate_s": everything.get("replay_s", everything.get("carry_s")),
        "low_s": everything.get("low_s"),
        "high_s": everything.get("high_s"),
    }


def corrected(record: Found, place: Place) -> Found:
    """Run a program with all corrections that are expected to pay, in turn with the unmodified one.

    If there are none, each is asked for by name; then the run need not be long enough to make up for being corrected at
    all. `named` says so.
    """
    found = _corrected(["--all"], record, place)
    if "nothing" in found:
        found = {"named": True, **_corrected([f"--{remedy}" for remedy in Correction], record, place)}
    return {"date": time.strftime("%Y-%m-%d %H:%M"), "load": os.getloadavg()[0], **found}


def _corrected(chosen: list[str], record: Found, place: Place) -> Found:
    options = [*chosen, "--json", "--runs", str(place.runs), "--results", str(_results(record, place))]
    with undisturbed():
        ended = _ffm(["apply-remedy", *options, "--timeout", str(place.limit_s * STAGE_FACTOR)], record, place)
    if "nothing to apply" in ended.output:
        return {"ok": True, "nothing": cause(ended)}
    try:
        outcome, _end = json.JSONDecoder().raw_decode(ended.output[ended.output.index("{\n") :])
    except ValueError:
        return {"ok": False, "cause": cause(ended)}
    kept = (
        "bare_s", "corrected_s", "saving_s", "saving_interval", "estimate_s", "estimate_low_s", "estimate_high_s",
        "expected", "bare_runs_s", "corrected_runs_s", "removed", "fallbacks", "sites", "left", "memory",
        "differences", "notes",
    )  # fmt: skip
    found = {"check": record["bare"]["check"], "changed": "", **{name: outcome[name] for name in kept}}
    if outcome["differences"]:  # any byte counts there; times may differ
        told = ResultsFolder(_results(record, place)).output("corrected").read_text(errors="replace")
        end = next(filter(_ENDED.match, outcome["differences"]), "")
        found["check"] = "failed" if end else own_check(record["bare"]["status"], told)
        found["changed"] = end or _difference(record, told, place)
    return {"ok": not found["changed"] and found["check"] == record["bare"]["check"], **found}


def _difference(record: Found, told: str, place: Place) -> str:
    """Return how what a program printed differs from what it prints bare, apart from times and from numbers that
    differ between two bare runs, too.
    """
    run = record["bare"]
    output = whole_lines(run["output"])
    if output != run["output"]:
        told = "".join(told.splitlines(keepends=True)[: len(output.splitlines())])
    changed = first_difference(output, told)
    if changed and "again" not in run:
        run["again"] = call(run["words"], Path(record["build"]["folder"]), place.environment, place.limit_s).output
    return first_difference(output, told, whole_lines(run["again"])) if changed else ""


def cause(ended: Ended) -> str:
    """Return the line that says most about a failure: the virtual GPU's own, or one that speaks of an error."""
    lines = [line.strip() for line in ended.output.splitlines() if line.strip()]
    for pattern in (r"^vgpu:|^libcuda", r"\berror\b|\bfail|mismatch|exception|incorrect|wrong"):
        told = [line for line in lines if re.search(pattern, line, re.IGNORECASE)]
        if told:
            return f"{ended.told}: {told[-1 if pattern[0] == '^' else 0][:300]}"
    return f"{ended.told}: {lines[-1][:300]}" if lines else ended.told


def _ffm(arguments: list[str], record: Found, place: Place) -> Ended:
    command = [sys.executable, "-m", "ffm", *arguments]
    folder = Path(record["build"]["folder"])
    environment = place.environment | {"COLUMNS": "200", "PYTHONPATH": os.environ.get("PYTHONPATH", "")}
    return call(command, folder, environment, place.limit_s * STAGE_FACTOR)


def _results(record: Found, place: Place) -> Path:
    return place.work / "results" / str(record["name"])
