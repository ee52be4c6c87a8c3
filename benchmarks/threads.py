"""Are estimates right with several threads? Small programs of two to four threads, with needless waits and without.

    python benchmarks/threads.py                                        # all kinds, both ways to use streams, 9 rounds
    python benchmarks/threads.py --kind ring --streams own --rounds 15

`programs/threads.cu` gives its threads tasks: the GPU sets memory, the CPU works, and a byte is downloaded. Most tasks
also wait, or free memory, before the CPU work. The kinds are how threads depend on each other: by queues, barriers,
joins, locks, semaphores, futures, OpenMP, a stream, events, a variable that they poll, or not at all. Threads have
streams of their own (`own`), or all use the legacy default stream, whose waits are for all of them (`legacy`).

The stages run once for each; the estimate is that for all problems that they find. Then the program runs in turn as it
is and without the waits. Both are one file, since a loop of another build may lie elsewhere and be slower by half. The
saving is the median of the differences, with its 95 % interval. Prints a table, and whether each estimate's interval
holds the saving, or agrees with it; writes `benchmarks/results/threads.json`.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import tempfile
from pathlib import Path

from common.building import build_cuda
from common.machine import description, watch_others
from common.twins import exit_status, write_rows
from devices import measure_pair, show, summary

from ffm.errors import FfmError

RESULTS = Path(__file__).parent / "results" / "threads.json"
KINDS = (
    "apart", "uneven", "four", "mixed", "heavy", "beside", "halfway", "bursts",
    "joined", "sections", "promised", "futures", "gathered",
    "barrier", "leader", "broadcast", "latch",
    "omp_for", "omp_sections", "omp_tasks",
    "pool", "workers", "pipeline", "chain", "makers", "market", "stages", "stealing",
    "mutex", "readers", "ring", "spinning", "slots", "rwlock", "once",
    "shared", "frees", "recycled", "polling", "callbacks", "counted", "events", "handed", "buffers",
)  # fmt: skip
"""A line for each header in `programs/threads`: alone, joins, meetings, openmp, queues, turns, streams."""
STREAMS = ("own", "legacy")
BUILT_WITH = ("-std=c++20", "-fopenmp")
TASKS = 3000
SET_BYTES, SET_US = 4096, 30.0


def main() -> int:
    """Measure, print and write."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--kind", dest="kinds", action="append", choices=KINDS, help="default: all")
    parser.add_argument("--streams", action="append", choices=STREAMS, help="default: both")
    parser.add_argument("--tasks", type=int, default=TASKS, help=f"of each program [{TASKS}]")
    parser.add_argument("--set", type=float, default=SET_US, metavar="US", help=f"how long the GPU sets [{SET_US}]")
    parser.add_argument("--rounds", type=int, default=9, help="runs of each version [9]")
    arguments = parser.parse_args()
    rows, failed = [], []
    with tempfile.TemporaryDirectory() as scratch, watch_others() as others:
        program = build_cuda("threads", Path(scratch), *BUILT_WITH)
        for kind in arguments.kinds or KINDS:
            for streams in arguments.streams or STREAMS:
                name = f"{kind}, {streams}"
                command = [str(program), kind, streams, str(arguments.tasks)]
                gpu = f"copy.set = {SET_BYTES / arguments.set / 1000}\n"
                try:
                    row = measure_pair(name, command, gpu, arguments.rounds, Path(scratch) / f"{kind}-{streams}")
                except (FfmError, subprocess.CalledProcessError) as error:
                    print(f"{name}: {error}", file=sys.stderr)
                    failed.append(name)
                    continue
                rows.append(row)
                print(name, file=sys.stderr, flush=True)
    show(rows, "threads")
    print(f"{summary(rows)} {others}")
    write_rows(RESULTS, description(arguments, others), rows)
    return exit_status(failed)


if __name__ == "__main__":
    sys.exit(main())
