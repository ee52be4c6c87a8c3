"""Programs with their corrected twins: what is found, what it costs, and whether the estimate matches the saving."""

from __future__ import annotations

import json
import shutil
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from common.twins import ARGUMENTS
from problems import problem_rows
from programs import CUBLAS, NAMES
from steps import FailedStep, Machine, OutOfTime, Row, last_line

from ffm.report.notes import sentence
from ffm.results.stored import open_results

TARGETS = Path(__file__).with_name("targets")
STAGES = ("baseline", "tracing", "memory", "sync-use")
SIZES = {
    "als": ["160"],
    "amg": ["600"],
    "fft": ["160"],
    "flag": ["4000"],
    "gaussian": ["1500"],
    "ibm": ["120"],
    "overlap": ["1800"],
}
"""Arguments of the samples with which a GPU works for a second or so; creating a context takes 0.1 to 0.2 s there, and
differs by 0.02 s from run to run.
"""
SAMPLE_ROUNDS = 3
TARGET_ROUNDS = 2

LEAST_SECONDS = 8.0
"""With less time left, a program is not started."""

ORDER = ("bindings", "torch_item", "cupy", "numba", "jax", "torch_unused", "torch_pageable", "torch_timing")
"""The targets by value, as far as there is time: each framework once, then the others."""

MODULES = {"bindings": "cuda.bindings.driver"}
"""What a target with this name imports, if that differs from its name."""


@dataclass(frozen=True, slots=True)
class Program:
    """A program and its corrected twins."""

    name: str
    command: list[str]
    twins: dict[str, list[str]]
    truth: str = ""
    """The sample whose truth file says what the twins correct."""
    ordinary_memory: bool = True
    """Whether its kernels may use ordinary memory by its address."""


@dataclass(frozen=True, slots=True)
class Runs:
    """Seconds of the fastest bare runs, by program; and what each printed."""

    seconds: dict[str, float]
    outputs: dict[str, str]


def measure_samples(machine: Machine) -> Iterator[Row]:
    """Measure every sample with its twins, then correct each of them automatically."""
    if machine.virtual:
        from ffm.vgpu.paths import sample

        folder = sample("als").parent
    else:
        folder = machine.programs / "samples"
    names = [name for name in NAMES if "_fixed" not in name]
    programs = [
        Program(
            name,
            _sample(machine, folder, name, name),
            {twin: _sample(machine, folder, twin, name) for twin in _twins(name)},
            name,
        )
        for name in names
        if (folder / name).exists()
    ]
    private = machine.programs / CUBLAS
    if (private / "als").exists() and (private / "als_fixed").exists():
        command, fixed = (_sample(machine, private, program, "als") for program in ("als", "als_fixed"))
        programs.insert(1, Program("als_cublas", command, {"als_fixed": fixed}, "als"))
    if not programs:
        raise FailedStep(f"no samples in {folder}")
    for program in programs:
        yield from _guarded(machine, program.name, _sample_rows(machine, program))
        yield from _guarded(machine, f"{program.name} corrected", _corrected(machine, program))


def _twins(name: str) -> list[str]:
    return [twin for twin in NAMES if twin.startswith(f"{name}_fixed")]


def _sample(machine: Machine, folder: Path, program: str, name: str) -> list[str]:
    return [str(folder / program), *(ARGUMENTS if machine.virtual else SIZES).get(name, [])]


def measure_targets(machine: Machine) -> Iterator[Row]:
    """Measure user scripts for CuPy, PyTorch, JAX and Numba, as far as these are installed."""
    sources = [path for path in TARGETS.glob("*.py") if not path.stem.endswith("_fixed")]
    installed: dict[str, str] = {}
    for source in sorted(sources, key=_place):
        framework = source.stem.split("_")[0]
        if machine.virtual and framework != "bindings":
            yield Row(source.stem, None, "skipped: tests/clients measures it on the virtual GPU")
            continue
        if framework not in installed:
            installed[framework] = _refusal(machine, MODULES.get(framework, framework))
        if installed[framework]:
            yield Row(source.stem, None, f"skipped: {installed[framework]}")
            continue
        twin = source.with_name(f"{source.stem}_fixed.py")
        program = Program(
            source.stem, [sys.executable, str(source)], {twin.stem: [sys.executable, str(twin)]}, ordinary_memory=False
        )
        yield from _guarded(machine, source.stem, _target_rows(machine, program, source))


def _place(source: Path) -> int:
    return next((place for place, start in enumerate(ORDER) if source.stem.startswith(start)), len(ORDER))


def _refusal(machine: Machine, module: str) -> str:
    """Return why a module cannot be imported; empty if it can."""
    done = machine.run([sys.executable, "-c", f"import {module}"], 90)
    return last_line(done.stderr) if done.returncode else ""


def _guarded(machine: Machine, subject: str, rows: Iterator[Row]) -> Iterator[Row]:
    """Return the rows; an error becomes one of them, and the next program gets its turn."""
    if machine.deadline - time.monotonic() < LEAST_SECONDS:
        yield Row(subject, None, "not measured: no time was left")
        return
    try:
        yield from rows
    except OutOfTime as reason:
        yield Row(subject, None, f"not measured to its end, no time was left: {reason}")
    except FailedStep as reason:
        yield Row(subject, False, str(reason))


def _sample_rows(machine: Machine, program: Program) -> Iterator[Row]:
    runs = _in_turn(machine, program, SAMPLE_ROUNDS)
    results, data = _measure(machine, program, runs)
    yield _cost_row(program, data)
    script = [sys.executable, str(Path(__file__).with_name("estimates.py")), str(results), program.truth]
    done = machine.run(script, 60)
    if done.returncode:
        raise FailedStep(f"estimates.py: {last_line(done.stderr)}")
    for twin, found in json.loads(done.stdout).items():
        if twin not in runs.seconds:
            yield Row(twin, False, "the twin is not built")
            continue
        saved = runs.seconds[program.name] - runs.seconds[twin]
        says = _comparison(saved, found["estimate_s"]) + f"; {found['named_share']:.0%} of its waits named as problems"
        yield Row(twin, None, says, {**found, "saved_s": saved})


def _target_rows(machine: Machine, program: Program, source: Path) -> Iterator[Row]:
    runs = _in_turn(machine, program, TARGET_ROUNDS)
    if len(set(runs.outputs.values())) != 1:
        said = " instead of ".join(output.strip() for output in reversed(runs.outputs.values()))
        yield Row(program.name, False, f"the twin prints {said}")
    results, data = _measure(machine, program, runs)
    yield _cost_row(program, data)
    analysis: dict[str, Any] = json.loads((results / "analysis.json").read_text())
    everything = analysis.get("everything") or {}
    estimate = everything.get("replay_s") or everything.get("carry_s") or 0.0
    for twin in program.twins:
        saved = runs.seconds[program.name] - runs.seconds[twin]
        yield Row(twin, None, _comparison(saved, estimate), {"estimate": everything, "saved_s": saved})
    yield from problem_rows(program.name, source, analysis)


def _comparison(saved: float, estimate: float) -> str:
    share = f"{estimate / saved:.2f} of that" if saved > 0 else "it saves nothing"
    return f"saves {saved:.3f} s, estimated {estimate:.3f} s ({share})"


def _cost_row(program: Program, data: dict[str, Any]) -> Row:
    stages = ", ".join(f"{ratio:.2f}" for ratio in data["stage_ratios"].values())
    says = f"{data['bare_s']:.2f} s; stages cost {stages} of that; {data['problem_sites']} sites with problems"
    return Row(program.name, None, "; ".join([says, *data["notes"]]), data)


def _measure(machine: Machine, program: Program, runs: Runs) -> tuple[Path, dict[str, Any]]:
    """Run the stages; return the results folder, and what they cost."""
    results = machine.work / "results" / program.name
    shutil.rmtree(results, ignore_errors=True)
    took: dict[str, float] = {}
    for stage in (*STAGES, "analysis"):
        began = time.monotonic()
        command = [] if stage == "analysis" else ["--timeout", "60", "--", *program.command]
        if stage == "memory" and not program.ordinary_memory:
            command.insert(0, "--no-ordinary-memory")
        machine.ffm("stage", stage, "--results", str(results), *command, at_most=120)
        took[stage] = round(time.monotonic() - began, 2)
    analysis: dict[str, Any] = json.loads((results / "analysis.json").read_text())
    bare = runs.seconds[program.name]
    walls = {stage: json.loads((results / f"{stage}.json").read_text())["run"]["wall_s"] for stage in STAGES}
    return results, {
        "seconds": runs.seconds,
        "bare_s": bare,
        "stage_ratios": {stage: wall / bare for stage, wall in walls.items()},
        "stage_seconds": took,
        "estimate": analysis.get("everything"),
        "problem_sites": sum(1 for site in analysis["sites"] if site["problem_count"]),
        "notes": [sentence(note) for note in open_results(results).document.notes],
    }


def _in_turn(machine: Machine, program: Program, rounds: int) -> Runs:
    """Run a program and its twins in turn. Other load on the machine only adds time, so the fastest runs count."""
    seconds: dict[str, float] = {}
    outputs: dict[str, str] = {}
    for _ in range(rounds):
        for name, command in {program.name: program.command, **program.twins}.items():
            began = time.monotonic()
            done = machine.run(command, 60)
            took = time.monotonic() - began
            if done.returncode:
                raise FailedStep(f"{name} fails: {last_line(done.stderr or done.stdout)}")
            seconds[name] = min(took, seconds.get(name, took))
            outputs[name] = done.stdout
    return Runs(seconds, outputs)


def _corrected(machine: Machine, program: Program) -> Iterator[Row]:
    """Return the automatic correction, with the estimate."""
    results = machine.work / "results" / program.name
    if not (results / "analysis.json").exists():
        raise FailedStep("there is no analysis")
    command = ["apply-remedy", "--all", "--runs", "2", "--timeout", "60", "--results", str(results), "--json"]
    done = machine.run([sys.executable, "-m", "ffm", *command], 120)
    try:
        found = json.loads(done.stdout)
    except ValueError:
        said = last_line(done.stderr or done.stdout)
        # Some samples have only problems that only another program corrects.
        yield Row(f"{program.name} corrected", None if "nothing to apply" in done.stderr else False, said)
        return
    says = f"saves {found['saving_s']:.3f} s of {found['bare_s']:.2f} s, estimated {found['estimate_s']:.3f} s"
    differences = found["differences"]
    yield Row(f"{program.name} corrected", not differences, "; ".join([says, *differences]), found)
