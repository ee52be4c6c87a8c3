"""The cost of tracing each kind of driver call; and of one, against an empty JavaScript hook, uftrace and ltrace.

    python benchmarks/calls.py
    python benchmarks/calls.py --rounds 9

`programs/calls.c` makes the same call (`cuEventQuery`, about 20 ns on the virtual GPU) from a depth of 16 frames, and
times itself. It runs, in turn and in several rounds:

- bare;
- under `ffm`: stage 2 itself, so with the whole stack, three time stamps and a record in the mapped file per call;
- under Frida with `Interceptor.attach` and empty `onEnter` and `onLeave` in JavaScript (QuickJS): the minimum cost of a
  JavaScript hook, with nothing recorded;
- under `uftrace record`, which rewrites the program's PLT slots: a record at entry and at exit, no stack;
- under `ltrace`, which puts a breakpoint on the PLT: a line of text per call, no stack (Debian's has no `-w`).

Each runs twice: with one call after the other, and with 200 microseconds of sleep before each call, after which caches
are cold, as in a program that waits for its GPU. Bare and under `ffm` it runs once more, with uploads from the stack
(`cuMemcpyHtoDAsync` of no bytes) while 10,000 blocks of the heap and one of 64 GiB are allocated: stage 2 looks up
which block each transfer uses. The cost of a call is its time minus that of the bare call in the same round. A tool
that is not installed is skipped, with a message.

After that, what stage 2 adds to each kind of driver call, with the same blocks allocated, as `kinds.py` measures it: by
the processor's time of the calling thread. Prints tables; writes `benchmarks/results/calls.json` and a picture next to
it.
"""

from __future__ import annotations

import argparse
import json
import shutil
import subprocess
import tempfile
import threading
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from statistics import fmean, median
from typing import Any

import frida
import kinds
from common.building import build
from common.machine import description, watch_others
from common.pictures import new_figure
from rich.console import Console
from rich.progress import Progress
from rich.table import Table

from ffm.driver.catalogue import load_catalogue
from ffm.instrument.recording.reader import read_recordings
from ffm.results.folder.paths import ResultsFolder
from ffm.stages.baseline import run_baseline
from ffm.stages.measure import Request
from ffm.stages.tracing import run_tracing

RESULTS = Path(__file__).parent / "results" / "calls.json"
CALL = "cuEventQuery"
UPLOAD = "cuMemcpyHtoDAsync_v2"
FRAMES = 16
GOAL_NS = 400
"""docs/architecture.md#goals: one traced call with a stack of 16 frames."""
BATCHES = 50
KIND_CALLS = 1000
"""Of each kind, in each turn."""

EMPTY_HOOK = """
rpc.exports.start = name => {
  Process.attachModuleObserver({
    onAdded(module) {
      if (/^libcuda\\.so/.test(module.name))
        Interceptor.attach(module.getExportByName(name), { onEnter() {}, onLeave() {} });
    }
  });
};
"""


@dataclass(frozen=True, slots=True)
class Pace:
    """The intervals between calls."""

    title: str
    calls: int
    """In each of `BATCHES` batches."""
    pause_us: int
    blocks: int = 0
    """Of host memory, allocated before; if there are any, the calls are uploads."""


PACES = [Pace("hot", 2000, 0), Pace("cold", 20, 200)]
UPLOADS = Pace("uploads", 2000, 0, 10_000)
"""Only bare and under ffm."""
SLOW = Pace("hot", 100, 0)
"""ltrace takes a thousand times as long per call."""


@dataclass(frozen=True, slots=True)
class Job:
    """One run of the program: where it is, what to do, and the file for its times."""

    program: Path
    pace: Pace
    output: Path

    @property
    def command(self) -> list[str]:
        """The command line."""
        pace = self.pace
        return [str(self.program), *map(str, (self.output, pace.calls, BATCHES, pace.pause_us, pace.blocks))]


@dataclass(frozen=True, slots=True)
class Way:
    """One way of tracing."""

    title: str
    records: str
    run: Callable[[Job], None]


def run_quietly(*command: str) -> None:
    """Run a command to its end, discarding its output."""
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)


def run_bare(job: Job) -> None:
    """Run the program bare."""
    run_quietly(*job.command)


def run_ffm(job: Job) -> None:
    """Run the program under stage 2, and make sure that every call was recorded with its whole stack."""
    call = UPLOAD if job.pace.blocks else CALL
    with tempfile.TemporaryDirectory(prefix="ffm-calls-") as folder:
        results = ResultsFolder(Path(folder))
        run_baseline(Request([str(job.program), str(job.output), "1", "1", "0", "0"], results, timeout_s=None))
        document = run_tracing(Request(job.command, results, timeout_s=None))
        hooks = {} if document.run is None else {hook.function: hook.how for hook in document.run.hooks}
        if hooks.get(call) != "replace-fast":
            raise RuntimeError(f"{call} was hooked by {hooks.get(call)}, not by replaceFast.")
        (recording,) = read_recordings(results.recordings("tracing"))
        rows = recording.operations[recording.operations["function"] == load_catalogue()[call].index]
        depths = {len(recording.stacks[stack].frames) for stack in set(rows["stack"].tolist())}
        if len(rows) != job.pace.calls * BATCHES or depths != {FRAMES}:
            raise RuntimeError(f"{len(rows)} calls were recorded, with stacks of {depths} frames.")


def run_javascript(job: Job) -> None:
    """Run the program with an empty hook in JavaScript."""
    device = frida.get_local_device()
    command: list[str | bytes] = [*job.command]
    process = device.spawn(command, stdio="pipe")
    session = device.attach(process)
    ended = threading.Event()
    session.on("detached", lambda *_: ended.set())
    script = session.create_script(EMPTY_HOOK, runtime="qjs")
    script.load()
    script.exports_sync.start(CALL)
    device.resume(process)
    ended.wait()


def run_uftrace(job: Job) -> None:
    """Run the program under uftrace, which records its library calls although it was not compiled for that."""
    with tempfile.TemporaryDirectory(prefix="ffm-uftrace-") as folder:
        run_quietly("uftrace", "record", "--force", "--no-event", "-F", CALL, "-d", folder, *job.command)


def run_ltrace(job: Job) -> None:
    """Run the program under ltrace."""
    pace = SLOW if job.pace.pause_us == 0 else job.pace
    slow = Job(job.program, pace, job.output)
    run_quietly("ltrace", "-o", "/dev/null", "-e", CALL, *slow.command)


WAYS = [
    Way("bare", "nothing", run_bare),
    Way("ffm", f"times, wait, arguments, result, whole stack ({FRAMES} frames)", run_ffm),
    Way("empty JavaScript hook", "nothing", run_javascript),
    Way("uftrace", "times of entry and exit", run_uftrace),
    Way("ltrace", "a line with arguments and result", run_ltrace),
]


Times = dict[str, dict[str, list[list[float]]]]
"""By pace and way: nanoseconds per call in each batch of each round."""


def measure(ways: list[Way], rounds: int) -> Times:
    """Run every way at every pace in each round."""
    runs = [(pace, way) for pace in PACES for way in ways] + [(UPLOADS, way) for way in ways[:2]]
    times: Times = {pace.title: {} for pace, _ in runs}
    with tempfile.TemporaryDirectory(prefix="ffm-calls-") as folder, Progress(console=Console(stderr=True)) as progress:
        program = build("calls", Path(folder))
        steps = progress.add_task("running", total=rounds * len(runs))
        for number in range(1, rounds + 1):
            for pace, way in runs:
                progress.update(steps, description=f"round {number} of {rounds}, {pace.title}: {way.title}")
                output = Path(folder) / "times"
                output.unlink(missing_ok=True)
                way.run(Job(program, pace, output))
                batches = [float(line) for line in output.read_text().split()]
                times[pace.title].setdefault(way.title, []).append(batches)
                progress.advance(steps)
    return times


def costs(times: Times, pace: str, way: str, middle: Callable[[list[float]], float]) -> list[float]:
    """Return what the way added to a call in each round: the middle of its batches minus that of the bare ones."""
    rounds = zip(times[pace][way], times[pace]["bare"], strict=True)
    return [middle(traced) - middle(bare) for traced, bare in rounds]


def summary(ways: list[Way], times: Times) -> list[dict[str, Any]]:
    """Return the results for each way."""
    rows: list[dict[str, Any]] = []
    for way in ways:
        row: dict[str, Any] = {"way": way.title, "records": way.records}
        for pace in [*PACES, UPLOADS]:
            if way.title not in times[pace.title]:
                continue
            added = costs(times, pace.title, way.title, median)
            ours = costs(times, pace.title, "ffm", median)
            row[pace.title] = {
                "ns_median": median(median(batches) for batches in times[pace.title][way.title]),
                "added_ns_median": median(added),
                "added_ns_min": min(added),
                "added_ns_max": max(added),
                "added_ns_mean": fmean(costs(times, pace.title, way.title, fmean)),
                "over_ffm": median(each / own for each, own in zip(added, ours, strict=True)),
                "added_ns": added,
            }
        rows.append(row)
    return rows


def show(rows: list[dict[str, Any]]) -> None:
    """Print a table for each pace."""
    titles: dict[str, str] = {
        "hot": f"one {CALL} after the other; goal {GOAL_NS} ns for ffm",
        "cold": f"each after {PACES[1].pause_us} us of sleep (cold caches)",
        "uploads": f"uploads from the stack with {UPLOADS.blocks:,} blocks allocated; goal {GOAL_NS} ns for ffm",
    }
    for pace, title in titles.items():
        table = Table(title=f"Added to a call of {rows[0][pace]['ns_median']:.0f} ns: {title}", title_justify="left")
        table.add_column("way")
        for heading in ("ns, median", "min to max", "mean", "over ffm"):
            table.add_column(heading, justify="right", no_wrap=True)
        for row in (row for row in rows[1:] if pace in row):
            cost = row[pace]
            table.add_row(
                row["way"],
                f"{cost['added_ns_median']:,.0f}",
                f"{cost['added_ns_min']:,.0f} to {cost['added_ns_max']:,.0f}",
                f"{cost['added_ns_mean']:,.0f}",
                f"{cost['over_ffm']:.2f}",
            )
        Console().print(table)
    for row in rows[1:]:
        print(f"{row['way']} records: {row['records']}")


def draw(rows: list[dict[str, Any]], path: Path) -> None:
    """Draw the costs on a logarithmic axis; does nothing if matplotlib is missing."""
    figure = new_figure(7, 3.2)
    if figure is None:
        return
    axes = figure.add_subplot()
    places = range(len(rows) - 1)
    for pace, shift, color in (("hot", -0.2, "#76a9d8"), ("cold", 0.2, "#c9d9e8")):
        lengths = [row[pace]["added_ns_median"] for row in rows[1:]]
        bars = axes.barh([place + shift for place in places], lengths, height=0.38, color=color, label=pace)
        axes.bar_label(bars, fmt="{:,.0f}", padding=3)
    axes.set_yticks(places, [row["way"] for row in rows[1:]])
    axes.axvline(GOAL_NS, color="#c0392b", label=f"goal for ffm, hot: {GOAL_NS} ns")
    axes.set_xscale("log")
    axes.margins(x=0.15)
    axes.invert_yaxis()
    axes.set_xlabel("added to one call, ns")
    axes.legend(loc="upper right")
    figure.savefig(path)


def main() -> None:
    """Measure, print and write."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=7)
    arguments = parser.parse_args()
    if arguments.rounds < 1:
        parser.error("--rounds must be at least 1")
    missing = [tool for tool in ("uftrace", "ltrace") if shutil.which(tool) is None]
    for tool in missing:
        print(f"{tool} is not installed (Debian package {tool}): skipped")
    ways = [way for way in WAYS if way.title not in missing]
    with watch_others() as others:
        times = measure(ways, arguments.rounds)
        each = kinds.measure(["tracing"], arguments.rounds, KIND_CALLS)
    rows = summary(ways, times)
    show(rows)
    kinds.show(each)
    print(others)
    unmet = [kind for verdict in ("above", "not known") for kind in kinds.with_verdict(each, verdict)]
    met = not unmet and all(rows[1][pace]["added_ns_median"] <= GOAL_NS for pace in ("hot", "uploads"))
    print(
        f"goal of {GOAL_NS} ns for ffm: {'met' if met else 'not met, or not known to be'}; {kinds.told_of_goal(each)}"
    )
    RESULTS.parent.mkdir(exist_ok=True)
    conditions = {"call": CALL, "upload": UPLOAD, "blocks": UPLOADS.blocks, "frames": FRAMES, "skipped": missing}
    told = {"goal_ns": GOAL_NS, "met": met, "ways": rows, "kinds": kinds.rows_of(each)}
    results = {**description(arguments, others), **conditions, **told}
    RESULTS.write_text(json.dumps(results, indent=2) + "\n")
    draw(rows, RESULTS.with_suffix(".svg"))
    print(f"written to {RESULTS}")


if __name__ == "__main__":
    main()
