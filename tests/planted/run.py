"""The planted suite in numbers: `python -m tests.planted.run --rounds 10 --watch pages`."""

from __future__ import annotations

import sys
import tempfile
import time
from pathlib import Path

import click

from ffm.stages.measure import Watch
from tests.memory_keys import has_memory_keys
from tests.planted.building import Programs, nvidia_runtime
from tests.planted.labels import planted_cases
from tests.planted.measuring import Answer
from tests.planted.pool import Measurements, UnmeasuredError
from tests.planted.proving import disproved
from tests.planted.report import disagreements, score

WATCHES: tuple[Watch, ...] = ("pages", "trace")


@click.command()
@click.option("--rounds", default=1, show_default=True, help="How often to measure every case.")
@click.option("--watch", type=click.Choice([*WATCHES, "both"]), default="pages", show_default=True)
@click.option("--only", default="", help="Only cases whose name contains this, or one of these, by commas.")
@click.option("--prove/--no-prove", default=False, help="Prove the labels by leaving waits out, first.")
@click.option("--measure/--no-measure", default=True, help="Measure with ffm.")
@click.option("--static-runtime", is_flag=True, help="Link NVIDIA's own runtime, statically, in place of ours.")
@click.option("--programs", type=click.Path(path_type=Path), help="Keep the executables here between calls.")
@click.option("--keep", type=click.Path(path_type=Path), help="Keep here what was measured of cases with a difference.")
def main(
    rounds: int,
    watch: str,
    only: str,
    prove: bool,
    measure: bool,
    static_runtime: bool,
    programs: Path | None,
    keep: Path | None,
) -> None:
    """Compare ffm's verdicts with the planted labels; exit with 1 if they differ."""
    cases = [case for case in planted_cases() if any(part in case.name for part in only.split(","))]
    watches = [one for one in WATCHES if watch in (one, "both")]
    if "pages" in watches and not has_memory_keys():
        cases = [case for case in cases if not case.needs_keys]
    wrong = 0
    with tempfile.TemporaryDirectory() as scratch:
        runtime = nvidia_runtime() if static_runtime else ["-lcudart"]
        built = Programs(programs or Path(scratch) / "programs", runtime)
        built.build_all({case.source for case in cases})
        if prove:
            began = time.monotonic()
            for case in cases:
                for sentence in disproved(case, built):
                    print(sentence)
                    wrong += 1
            print(f"{len(cases)} cases proved in {time.monotonic() - began:.0f} s; {wrong} labels are disproved")
        for number in range(1, (rounds if measure else 0) + 1):
            began = time.monotonic()
            answers: list[Answer] = []
            failed = 0
            with Measurements(cases, built, (keep or Path(scratch)) / str(number), watches) as measurements:
                for case in cases:
                    try:
                        answers += measurements.answers(case)
                    except UnmeasuredError as error:
                        failed += 1
                        print(f"{case.name}: {error}")
            wrong += failed
            for one in watches:
                of_watch = [answer for answer in answers if answer.watch == one]
                for difference in disagreements(of_watch):
                    print(difference)
                wrong += len(disagreements(of_watch))
                print(
                    f"round {number}, watch {one}: {score(of_watch)}; {len(cases)} cases, {failed} failed "
                    f"[{time.monotonic() - began:.0f} s]",
                    flush=True,
                )
    sys.exit(1 if wrong else 0)


if __name__ == "__main__":
    main()
