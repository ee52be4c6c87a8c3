"""One line per stage: a spinner with the elapsed time while it runs, then its result."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import numpy as np
from rich.console import Console
from rich.progress import Progress, SpinnerColumn, TextColumn, TimeElapsedColumn

from ffm.cli.running.stage_events import EventSink
from ffm.model.necessity.reasons import REQUIRED
from ffm.plain_text import plain
from ffm.report.numbers import plural
from ffm.results.columnar.tables import read_table
from ffm.results.documents.document import Document
from ffm.results.documents.measured import Baseline, Memory
from ffm.steps import Tell, silently

TITLES = {
    "baseline": "1 baseline",
    "tracing": "2 tracing",
    "memory": "3 memory",
    "sync-use": "4 sync use",
    "analysis": "5 analysis",
}


class StageLine:
    """The line of a running stage. `tell` gets each step that begins."""

    def __init__(self, title: str, tell: Tell = silently) -> None:
        self.title = title
        self.tell = tell
        self.summary = ""
        self.remark = ""
        """A sentence on a line of its own below it."""
        self.wall_s = 0.0

    def say(self, summary: str) -> None:
        """Set what the line shows when the stage is done."""
        self.summary = summary

    def done(self, document: Document, folder: Path) -> None:
        """Summarize a measured run and what it found; its tables are in `folder`."""
        run = document.run
        if run is None:
            return
        self.wall_s = run.wall_s
        operations = sum(process.operations for process in run.processes)
        waiting = "" if run.sees_waits else " (only synchronizations are seen to wait)"
        processes = f" in {len(run.processes)} processes" if len(run.processes) > 1 else ""
        if run.unrecorded:
            processes += f" and {run.unrecorded:,} that ended before they could call the driver"
        self.say(f"ran {run.wall_s:.2f} s, {operations:,} operations{processes}{waiting}{_found(document, folder)}")


def _found(document: Document, folder: Path) -> str:
    """Return what a stage adds to the known facts, to follow the count of operations."""
    if isinstance(document, Baseline):
        waited = sum(call.wait_s for call in document.waits)
        return f"; {plural(len(document.functions), 'driver function')} waited {waited:.2f} s"
    if isinstance(document, Memory):
        reasons = read_table(folder / document.synchronizations)["reason"]
        needed = np.isin(reasons, [int(reason) for reason in REQUIRED]).sum()
        return f"; {len(reasons) - needed:,} of {len(reasons):,} waits not needed"
    return ""


@contextmanager
def running(stage: str, subject: str) -> Iterator[StageLine]:
    """Show on standard error that a stage, or the quick mode, is running; print its line when it is done."""
    console = Console(stderr=True, highlight=False)
    line = StageLine(TITLES.get(stage, stage))
    events = EventSink(stage)
    events.begin()
    began = time.monotonic()
    columns = (SpinnerColumn(), TextColumn("{task.description}", markup=False), TimeElapsedColumn())
    with Progress(*columns, console=console, transient=True, disable=not console.is_terminal) as progress:
        task = progress.add_task(plain(f"stage {line.title}: {subject}"), total=None)

        def tell(step: str) -> None:
            events.step(step)
            progress.update(task, description=plain(f"stage {line.title}: {subject}: {step}"))

        line.tell = tell
        yield line
    events.end(line.summary, line.wall_s, line.remark)
    took = time.monotonic() - began
    console.print(
        plain(f"stage {line.title}: {line.summary} [{took:.1f} s]"), markup=False, emoji=False, soft_wrap=True
    )
    if line.remark:
        console.print(line.remark, markup=False, emoji=False, soft_wrap=True)
