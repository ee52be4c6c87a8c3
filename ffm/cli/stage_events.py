"""What stages tell `ffm run` while it waits for them: lines of JSON in a file that the environment names."""

from __future__ import annotations

import os
import time
from pathlib import Path

import msgspec

VARIABLE = "FFM_STAGE_EVENTS"
"""Names the file."""


class StageEvent(msgspec.Struct, frozen=True):
    """A stage begins, or has ended well."""

    stage: str
    at: float
    """Seconds on the clock of `time.monotonic`, which all processes share."""
    ended: bool = False
    summary: str = ""
    """What an ended stage found."""
    wall_s: float = 0.0
    """How long the program ran in it; 0 in stages that do not run it."""


class EventSink:
    """Where a stage tells its events; nowhere when nobody asked."""

    def __init__(self, stage: str) -> None:
        """Take the file's name out of the environment, which the measured program inherits."""
        self._stage = stage
        self._file = os.environ.pop(VARIABLE, None)

    def begin(self) -> None:
        """Tell that the stage begins."""
        self._write(StageEvent(self._stage, time.monotonic()))

    def end(self, summary: str, wall_s: float) -> None:
        """Tell that the stage has ended well, and what it found."""
        self._write(StageEvent(self._stage, time.monotonic(), True, summary, wall_s))

    def _write(self, event: StageEvent) -> None:
        if self._file is not None:
            with Path(self._file).open("ab") as file:
                file.write(msgspec.json.encode(event) + b"\n")


class EventReader:
    """Reads the events of a file as they come."""

    def __init__(self, path: Path) -> None:
        path.touch()
        self._path = path
        self._read = 0

    def news(self) -> list[StageEvent]:
        """The events since the last call; a line that is still being written waits for the next one."""
        with self._path.open("rb") as file:
            file.seek(self._read)
            text = file.read()
        whole = text[: text.rfind(b"\n") + 1]
        self._read += len(whole)
        return [msgspec.json.decode(line, type=StageEvent) for line in whole.splitlines()]
