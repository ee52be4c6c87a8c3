"""What stages report to `ffm run` while it waits for them: lines of JSON in a file named by the environment."""

from __future__ import annotations

import os
import time
from pathlib import Path

import msgspec

VARIABLE = "FFM_STAGE_EVENTS"
"""The environment variable that names the file."""


class StageEvent(msgspec.Struct, frozen=True):
    """A stage starts, begins a step, or has ended successfully."""

    stage: str
    at: float
    """Seconds on the clock of `time.monotonic`, which all processes share."""
    ended: bool = False
    summary: str = ""
    """What a completed stage found."""
    wall_s: float = 0.0
    """How long the program ran in it; 0 in stages that do not run it."""
    step: str = ""
    """The step that begins."""
    remark: str = ""
    """A sentence to follow what a completed stage found; mostly empty."""


class EventSink:
    """Where a stage reports its events; nowhere if nobody asked."""

    def __init__(self, stage: str) -> None:
        """Remove the file's name from the environment, which the measured program inherits."""
        self._stage = stage
        self._file = os.environ.pop(VARIABLE, None)

    def begin(self) -> None:
        """Report that the stage starts."""
        self._write(StageEvent(self._stage, time.monotonic()))

    def step(self, step: str) -> None:
        """Report that a step of the stage begins."""
        self._write(StageEvent(self._stage, time.monotonic(), step=step))

    def end(self, summary: str, wall_s: float, remark: str = "") -> None:
        """Report that the stage has ended successfully, and what it found."""
        self._write(StageEvent(self._stage, time.monotonic(), True, summary, wall_s, remark=remark))

    def _write(self, event: StageEvent) -> None:
        if self._file is not None:
            with Path(self._file).open("ab") as file:
                file.write(msgspec.json.encode(event) + b"\n")


class EventReader:
    """Reads the events in a file as they arrive."""

    def __init__(self, path: Path) -> None:
        path.touch()
        self._path = path
        self._read = 0

    def news(self) -> list[StageEvent]:
        """Return the events since the last call, without a line that is still being written."""
        with self._path.open("rb") as file:
            file.seek(self._read)
            text = file.read()
        whole = text[: text.rfind(b"\n") + 1]
        self._read += len(whole)
        return [msgspec.json.decode(line, type=StageEvent) for line in whole.splitlines()]
