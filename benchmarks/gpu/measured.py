"""Programs with their corrected twins: what is found, what it costs, and whether the estimate is what is saved."""

from __future__ import annotations

import json
import re
import shutil
import statistics
import sys
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from steps import ROOT, FailedStep, Machine, Row, SkippedStep, last_line

from ffm.vgpu.paths import sample

SAMPLES = ROOT / "ffm" / "vgpu" / "samples"
TARGETS = Path(__file__).with_name("targets")
STAGES = ("baseline", "tracing", "memory", "sync-use")
ROUNDS = 3
_MARK = re.compile(r"# problem: (\w+)")


@dataclass(frozen=True, slots=True)
class Pair:
    """A program and its corrected twin."""

    name: str
    program: list[str]
    fixed: list[str]
    source: Path | None = None
    """With lines that are marked as problems; None where nothing is marked."""


def measure_samples(machine: Machine) -> list[Row]:
    """Every sample with its twin, and the automatic correction of each."""
    folder = sample("als").parent if machine.virtual else _build_samples(machine)
    names = sorted(path.name.removesuffix("_fixed") for path in folder.glob("*_fixed"))
    if not names:
        raise FailedStep(f"no samples in {folder}")
    pairs = [Pair(name, [str(folder / name)], [str(folder / f"{name}_fixed")]) for name in names]
    return [row for pair in pairs for row in _measured(machine, pair, correct=True)]


def measure_targets(machine: Machine) -> list[Row]:
    """Scripts of users of CuPy, PyTorch, JAX and Numba, as far as these are installed."""
    rows: list[Row] = []
    for source in sorted(TARGETS.glob("*.py")):
        if source.stem.endswith("_fixed"):
            continue
        twin = source.with_name(f"{source.stem}_fixed.py")
        if machine.virtual and not source.stem.startswith("bindings_"):
            rows.append(Row(source.stem, None, "skipped: the virtual GPU runs no code of NVIDIA's runtime"))
            continue
        module = {"bindings": "cuda.bindings.driver"}.get(source.stem.split("_")[0], source.stem.split("_")[0])
        if machine.run([sys.executable, "-c", f"import {module}"], 60).returncode:
            rows.append(Row(source.stem, None, f"skipped: {module} is not installed"))
            continue
        pair = Pair(source.stem, [sys.executable, str(source)], [sys.executable, str(twin)], source)
        rows += _measured(machine, pair, correct=False)
    return rows


def _build_samples(machine: Machine) -> Path:
    if shutil.which("nvcc") is None:
        raise SkippedStep("there is no nvcc")
    folder = machine.output / "samples"
    done = machine.run(
        ["sh", str(SAMPLES / "build_nvcc.sh"), str(folder)], 120, CUDA_ARCH=machine.architecture or "native"
    )
    if done.returncode:
        raise FailedStep(f"build_nvcc.sh: {last_line(done.stderr)}")
    return folder


def _measured(machine: Machine, pair: Pair, *, correct: bool) -> list[Row]:
    """Measure one pair; what goes wrong becomes a row."""
    try:
        return _measure(machine, pair, correct=correct)
    except FailedStep as error:
        return [Row(pair.name, False, str(error))]


def _measure(machine: Machine, pair: Pair, *, correct: bool) -> list[Row]:
    results = machine.output / "results" / pair.name
    shutil.rmtree(results, ignore_errors=True)
    bare, fixed = _in_turn(machine, pair)
    saved = bare - fixed
    ratios: list[float] = []
    for stage in STAGES:
        machine.ffm("stage", stage, "--results", str(results), "--", *pair.program, at_most=120)
    machine.ffm("stage", "analysis", "--results", str(results), at_most=60)
    analysis: dict[str, Any] = json.loads((results / "analysis.json").read_text())
    ratios = [cost["ratio"] for cost in analysis["costs"]]
    everything = analysis.get("everything") or {}
    estimate = everything.get("replay_s") or everything.get("carry_s") or 0.0
    data = {
        "bare_s": bare,
        "fixed_s": fixed,
        "saved_s": saved,
        "estimate": everything,
        "stage_ratios": dict(zip(STAGES, ratios, strict=False)),
        "problem_sites": sum(1 for site in analysis["sites"] if site["problem_count"]),
        "notes": analysis["notes"],
    }
    share = f"{estimate / saved:.0%} of that" if saved > 0 else "it saves nothing"
    stages = ", ".join(f"{ratio:.2f}" for ratio in ratios)
    rows = [
        Row(
            pair.name,
            None,
            f"{bare:.2f} s, twin saves {saved:.2f} s, estimated {estimate:.2f} s ({share}); stages cost {stages}",
            data,
        )
    ]
    if pair.source is not None:
        rows += _problems(pair, analysis)
    if correct:
        rows += _corrected(machine, pair, results)
    return rows


def _in_turn(machine: Machine, pair: Pair) -> tuple[float, float]:
    """Return the medians of both programs' seconds, run in turn. Both must print the same."""
    seconds: tuple[list[float], list[float]] = ([], [])
    outputs: list[str] = []
    for _ in range(ROUNDS):
        for command, times in zip((pair.program, pair.fixed), seconds, strict=True):
            began = time.monotonic()
            done = machine.run(command, 60)
            times.append(time.monotonic() - began)
            if done.returncode:
                raise FailedStep(f"{Path(command[-1]).name} fails: {last_line(done.stderr or done.stdout)}")
            outputs.append(done.stdout)
    if pair.source is not None and len(set(outputs)) != 1:
        raise FailedStep(f"the twin prints {outputs[1].strip()} instead of {outputs[0].strip()}")
    return statistics.median(seconds[0]), statistics.median(seconds[1])


def _problems(pair: Pair, analysis: dict[str, Any]) -> list[Row]:
    """Whether each marked line of the script is found as what it is."""
    assert pair.source is not None
    rows: list[Row] = []
    for number, line in enumerate(pair.source.read_text().splitlines(), 1):
        mark = _MARK.search(line)
        if mark is None:
            continue
        sites = [site for site in analysis["sites"] if _passes(analysis, site, pair.source, number)]
        found = {verdict["kind"] for site in sites for verdict in (*site["synchronization"], *site["transfer"])}
        problems = sum(site["problem_count"] for site in sites)
        kind = mark[1]
        good = {
            "unnecessary": bool(found & {"unnecessary", "conditionally unnecessary"}),
            "misplaced": problems > 0,
            "transfer": bool(found & {"no-op", "repeat", "copy"}),
            "any": problems > 0,
        }[kind]
        says = f"{kind}: {', '.join(sorted(found)) or 'nothing found'}; {problems} problems in {len(sites)} sites"
        rows.append(Row(f"{pair.name}:{number}", good, says))
    return rows


def _passes(analysis: dict[str, Any], site: dict[str, Any], source: Path, line: int) -> bool:
    """Whether a site's stack goes through a line of a script."""
    if Path(site["file"]).name == source.name and site["line"] == line:
        return True
    frames = analysis["stacks"][site["stack"]]["frames"]
    return any(Path(frame.get("file") or "").name == source.name and frame.get("line") == line for frame in frames)


def _corrected(machine: Machine, pair: Pair, results: Path) -> list[Row]:
    """The automatic correction, beside the estimate."""
    done = machine.run(
        [sys.executable, "-m", "ffm", "apply-remedy", "--all", "--runs", "2", "--results", str(results), "--json"], 120
    )
    try:
        found = json.loads(done.stdout)
    except ValueError:
        return [Row(f"{pair.name} corrected", False, last_line(done.stderr or done.stdout))]
    says = f"saves {found['saving_s']:.2f} s of {found['bare_s']:.2f} s, estimated {found['estimate_s']:.2f} s"
    differences = found["differences"]
    return [Row(f"{pair.name} corrected", not differences, "; ".join([says, *differences]), found)]
