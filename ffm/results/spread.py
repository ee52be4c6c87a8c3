"""Spreads independent blocks of the analysis over other processes, on this machine or on others.

Any `concurrent.futures.Executor` runs them. What all blocks need lies in a file that their processes map, so that those
of one machine share its memory; processes elsewhere must see the same file system. A block gives the same numbers
wherever it runs. A block that its process cannot do, because it was killed or does not see the file, is done here: what
goes wrong there costs time, but no result.

Anybody who may write to the results folder could put another file there. So each block gets a digest of the part of the
file that is unpickled; the rest are numbers.
"""

from __future__ import annotations

import functools
import hashlib
import mmap
import pickle
import tempfile
from collections.abc import Callable, Iterator
from concurrent.futures import Executor, Future
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from ffm import __version__
from ffm.model.estimators.replay import Replay, Replayed
from ffm.model.estimators.simulation.state import Fix

ALIGNMENT = 64
"""Bytes: a column begins at a multiple of this in its file."""

_LENGTH_BYTES = 8


@dataclass(slots=True)
class Spread:
    """Runs blocks with an executor, which is started when the first ones are worth it.

    Args:
        start: starts the executor; whoever made the spread ends it.
        folder: where files for the processes go.
        least_visits: rows that all blocks together must visit, so that starting and telling other processes pays.
    """

    start: Callable[[], Executor]
    folder: Path
    least_visits: int = 0
    failures: list[str] = field(default_factory=list)
    """Why blocks had to be done here, one entry for each."""

    def replays(self, replay: Replay, fixes: list[Fix], visits: int) -> list[Replayed]:
        """Return what some fixes save, which visit about so many rows together, in their order."""
        if len(fixes) < 2 or visits < self.least_visits:
            return [replay.replayed(fix) for fix in fixes]
        try:
            with shared((replay, fixes), self.folder) as (path, digest):
                executor = self.start()
                waiting = [
                    executor.submit(_replay_block, str(path), digest, number, __version__)
                    for number in range(len(fixes))
                ]
                return [
                    self._result(future, functools.partial(replay.replayed, fix))
                    for future, fix in zip(waiting, fixes, strict=True)
                ]
        except Exception as error:  # no room for the file, no executor, or one that takes no more blocks
            self.failures.append(_sentence_of(error))
            return [replay.replayed(fix) for fix in fixes]

    def _result(self, future: Future[Any], here: Callable[[], Replayed]) -> Replayed:
        """Return the result of a block. If it failed elsewhere, compute it here, so that an error in it shows here."""
        try:
            return Replayed(*future.result())
        except Exception as error:
            self.failures.append(_sentence_of(error))
            return here()


def _sentence_of(error: Exception) -> str:
    return f"{type(error).__name__}: {error}" if str(error) else type(error).__name__


@contextmanager
def shared(value: object, folder: Path) -> Iterator[tuple[Path, bytes]]:
    """Write a value to a file that `mapped` reads, and give its digest; the file is only there until the end.

    Raises:
        OSError: It cannot be written.
    """
    columns: list[pickle.PickleBuffer] = []
    content = pickle.dumps(value, protocol=5, buffer_callback=columns.append)
    raw = [column.raw() for column in columns]
    header = pickle.dumps((content, [len(column) for column in raw]))
    with tempfile.NamedTemporaryFile(dir=folder, prefix=".blocks-") as file:
        file.write(len(header).to_bytes(_LENGTH_BYTES, "little") + header)
        for column in raw:
            file.write(bytes(-file.tell() % ALIGNMENT))
            file.write(column)
        file.flush()
        yield Path(file.name).absolute(), hashlib.sha256(header).digest()


@functools.lru_cache(maxsize=1)
def mapped(path: str, digest: bytes) -> Any:
    """Return the value in a file of `shared`. Its columns are mapped; what is written to them stays in this process.

    Raises:
        OSError: The file is not there.
        RuntimeError: It is another file.
    """
    with Path(path).open("rb") as file:
        content = memoryview(mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_COPY))
    place = _LENGTH_BYTES + int.from_bytes(content[:_LENGTH_BYTES], "little")
    header = content[_LENGTH_BYTES:place]
    if hashlib.sha256(header).digest() != digest:
        raise RuntimeError(f"{path} is not the file that was written for this analysis")
    pickled, lengths = pickle.loads(header)
    columns = []
    for length in lengths:
        place += -place % ALIGNMENT
        columns.append(content[place : place + length])
        place += length
    return pickle.loads(pickled, buffers=columns)


def _replay_block(path: str, digest: bytes, number: int, version: str) -> tuple[float, float, float, float]:
    """Replay one of the fixes in a file of `shared`; in a process of an executor.

    Raises:
        RuntimeError: This process has another version of ffm, which may give other numbers.
        OSError: It does not see the file.
    """
    if version != __version__:
        raise RuntimeError(f"ffm {__version__} runs there, and {version} here")
    replay, fixes = mapped(path, digest)
    found: Replayed = replay.replayed(fixes[number])
    return found.likely_s, found.low_s, found.high_s, found.touched_s
