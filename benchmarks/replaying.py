"""How long the model takes beside sorting as many numbers: the GPU's times, what threads have in common, a replay, the
graph of what waited for what, the critical path, and who is to blame.

    python benchmarks/replaying.py                # 10^6 operations
    python benchmarks/replaying.py --power 5 --threads 1 10000

Prints the processor seconds of each step, for a million operations, and their ratio to NumPy's sort of as many random
64-bit numbers. The sort and the steps take turns, so that the ratio says more of the code than of the machine and of
what else it does. The timeline is made up (`common/made_up.py`), of one thread and of several, with a stream for each.
Kernels are compiled before. Writes `benchmarks/results/replaying.json`.
"""

from __future__ import annotations

import argparse
import json
import os
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np
from common.machine import description, watch_others
from common.made_up import make_timeline

from ffm.model.device import Action, DeviceWork
from ffm.model.estimators.replay import Replay
from ffm.model.gpu_times.inference import infer_gpu_times
from ffm.model.timeline import Kind, Timeline
from ffm.model.waiting.blame import find_blame, find_idlers
from ffm.model.waiting.graph import build_graph
from ffm.model.waiting.meetings import joined_teams
from ffm.model.waiting.path import cut_path, find_stretches

RESULTS = Path(__file__).parent / "results" / "replaying.json"
THREADS = [1, 8]
ROUNDS = 5
LEAST_WAKING_NS = 5_000
COMPILED_ROWS = 50_000
"""Enough rows that kernels are compiled for them."""


def parallel(timeline: Timeline, threads: int) -> tuple[Timeline, DeviceWork]:
    """Let the threads run at the same time, each with its own stream; return also what they do on the GPU."""
    first = np.searchsorted(timeline.thread, np.arange(threads))
    timeline = replace(timeline, start=timeline.start - timeline.start[first][timeline.thread])
    kind = timeline.kind
    action = np.full(len(timeline), Action.NONE, np.uint8)
    action[kind == Kind.LAUNCH] = Action.ENQUEUE
    action[kind == Kind.TRANSFER] = np.where(timeline.wait > 0, Action.ENQUEUE_AND_WAIT, Action.ENQUEUE)[
        kind == Kind.TRANSFER
    ]
    action[kind == Kind.SYNCHRONIZATION] = Action.WAIT_CONTEXT
    action[(kind == Kind.FREE) & ((timeline.wait > 0) | (timeline.problem != 0))] = Action.WAIT_CONTEXT
    none = np.full(len(timeline), -1, np.int32)
    return timeline, DeviceWork(
        action=action,
        stream=np.where(action != Action.NONE, timeline.thread, -1).astype(np.int32),
        event=none,
        partner=none,
        copied=np.zeros(len(timeline), np.int64),
        measured=none.astype(np.int64),
        process_of_thread=np.zeros(threads, np.int32),
        legacy=np.full(1, -1, np.int32),
        stream_process=np.zeros(threads, np.int32),
        events=0,
    )


def processor_s(step: Callable[[], Any]) -> float:
    """Return the processor seconds of this process, all threads, for one step."""
    began = time.process_time()
    step()
    return time.process_time() - began


def measure(rows: int, threads: int) -> dict[str, float]:
    """Return the processor seconds of each step and of the sort, medians of some rounds."""
    timeline, work = parallel(make_timeline(rows, threads), threads)
    inference = infer_gpu_times(timeline, work, LEAST_WAKING_NS)
    replay = Replay(timeline, work, inference)
    graph = build_graph(timeline, work, inference, inference.likely)
    meetings = joined_teams(timeline, replay.threads)
    everything = np.ones(rows, bool)
    numbers = np.random.default_rng(rows).integers(0, 1 << 62, rows)
    steps: dict[str, Callable[[], Any]] = {
        "sort": lambda: np.sort(numbers),
        "the GPU's times": lambda: infer_gpu_times(timeline, work, LEAST_WAKING_NS),
        "threads and call sites": lambda: Replay(timeline, work, inference),
        "a replay": lambda: replay.selected(everything),
        "the graph": lambda: build_graph(timeline, work, inference, inference.likely),
        "the path": lambda: cut_path(
            timeline, work, graph, find_stretches(timeline, work, graph, replay.threads, meetings)
        ),
        "who is to blame": lambda: (
            find_idlers(timeline, work, graph, meetings),
            find_blame(timeline, work, graph, meetings),
        ),
    }
    taken: dict[str, list[float]] = {name: [] for name in steps}
    for _ in range(ROUNDS):
        for name, step in steps.items():
            taken[name].append(processor_s(step))
    return {name: median(seconds) for name, seconds in taken.items()}


def main() -> None:
    """Measure, print and write."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--power", type=int, default=6, help="operations, as a power of ten [6]")
    parser.add_argument("--threads", type=int, nargs="+", default=THREADS, help="each of these numbers [1 8]")
    arguments = parser.parse_args()
    if arguments.power < 5:
        parser.error("--power must be at least 5: shorter tables run as plain Python")
    rows = 10**arguments.power
    measurements = []
    with watch_others() as others:
        for threads in arguments.threads:
            measure(COMPILED_ROWS, min(threads, 8))
            found = measure(rows, threads)
            for name, seconds in found.items():
                ratio = seconds / found["sort"]
                measurements.append({"threads": threads, "step": name, "s": seconds, "ratio": ratio})
                a_million = seconds * 1e6 / rows
                print(f"{threads} threads  {name:24}{a_million:8.3f} s a million operations{ratio:8.1f} sorts")
    print(others, f"Load: {os.getloadavg()[0]:.1f}.")
    results = {**description(arguments, others), "rows": rows, "measurements": measurements}
    RESULTS.write_text(json.dumps(results, indent=2) + "\n")


if __name__ == "__main__":
    main()
