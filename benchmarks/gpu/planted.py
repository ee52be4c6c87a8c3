"""The planted suite of needed and unneeded cases, compiled by nvcc for the GPU, or for the virtual one."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

from steps import Machine, Row, end_group, last_line

WORKERS = 12
"""Most simultaneous measurements: verdicts do not depend on the speed of a run, but a case has a time limit."""


def check_planted(machine: Machine) -> Iterator[Row]:
    """Measure the cases and compare the verdicts with the labels, as far as there is time."""
    import msgspec
    from planted_worker import NOT_COMPILED, TOO_FEW_DEVICES, Measured

    from tests.planted.labels import planted_cases
    from tests.planted.measuring import Answer
    from tests.planted.report import disagreements, score

    folder = machine.work / "planted"
    folder.mkdir(exist_ok=True)
    workers = max(1, min(WORKERS, (os.cpu_count() or 1) * 3 // 4))
    machine.environment["FFM_PLANTED_VIRTUAL"] = "1" if machine.virtual else ""
    running = [_worker(machine, folder, number, workers) for number in range(workers)]
    failures: list[str] = []
    answers: list[Answer] = []
    measured = missing = elsewhere = 0
    for text in _lines(machine, running):
        case = msgspec.json.decode(text, type=Measured)
        measured += 1
        if case.failure == NOT_COMPILED:
            missing += 1
        elif case.failure == TOO_FEW_DEVICES:
            elsewhere += 1
        elif case.failure:
            failures.append(case.name)
            yield Row(case.name, False, case.failure)
        answers += case.answers
        for difference in disagreements(case.answers):
            yield Row("verdict", False, difference)
    done = measured - missing - elsewhere
    counts = (
        f"{done} of {len(planted_cases())} cases, {len(failures)} failed, {missing} not compiled, {elsewhere} need "
        "several devices"
    )
    said = f"{score(answers)}; {counts}"
    yield Row("all", done > 0, said)
    for process, path in running:
        if process.returncode not in (0, -9):
            said = last_line(path.with_suffix(".txt").read_text(errors="replace"))
            yield Row("worker", False, f"ended with {process.returncode}: {said}; see {path.with_suffix('.txt')}")


def _worker(machine: Machine, folder: Path, number: int, workers: int) -> tuple[subprocess.Popen[str], Path]:
    path = folder / f"worker-{number}.jsonl"
    script = str(Path(__file__).with_name("planted_worker.py"))
    command = [sys.executable, script, str(machine.programs), str(folder), str(number), str(workers)]
    with path.open("w") as output, path.with_suffix(".txt").open("w") as errors:
        return machine.start(command, output, errors), path


def _lines(machine: Machine, running: list[tuple[subprocess.Popen[str], Path]]) -> Iterator[bytes]:
    """Return what the workers print, until they finish or the time is over."""
    places = dict.fromkeys((path for _, path in running), 0)
    while True:
        alive = [process for process, _ in running if process.poll() is None]
        late = time.monotonic() > machine.deadline
        for process in alive if late else ():
            end_group(process)
            process.wait()
        for path, place in places.items():
            with path.open("rb") as stream:
                stream.seek(place)
                whole = stream.read().rpartition(b"\n")[0]
            places[path] += len(whole) + 1 if whole else 0
            yield from whole.splitlines()
        if late or not alive:
            return
        time.sleep(0.2)
