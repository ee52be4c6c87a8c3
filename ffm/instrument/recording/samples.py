"""Where a process's threads worked between driver calls, as the collector sampled it."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ffm.instrument.recording.chunks import Chunk, DamageError, read_records
from ffm.instrument.recording.stacks import (
    Functions,
    Place,
    RecordedPythonFrame,
    frame_bytes,
    native_frames,
    python_frame,
    split_frames,
)


@dataclass(frozen=True, slots=True)
class SampledStack:
    """The inner frames of the program, innermost first.

    The first offset is an address that was executed, the others are return addresses.
    """

    frames: list[Place]
    python: list[RecordedPythonFrame]


@dataclass(frozen=True, slots=True)
class Samples:
    """Samples of a process, in order within each thread. Columns of length n."""

    thread: NDArray[np.int64] = field(default_factory=lambda: np.empty(0, np.int64))
    time: NDArray[np.int64] = field(default_factory=lambda: np.empty(0, np.int64))
    operation: NDArray[np.int64] = field(default_factory=lambda: np.empty(0, np.int64))
    """How many operations of its thread had been recorded; 0 if it never calls the driver."""
    nanoseconds: NDArray[np.int64] = field(default_factory=lambda: np.empty(0, np.int64))
    """Of the thread's processor time that it stands for."""
    stack: NDArray[np.int64] = field(default_factory=lambda: np.empty(0, np.int64))
    """An index into `stacks`."""
    stacks: list[SampledStack] = field(default_factory=list)

    def __len__(self) -> int:
        return len(self.thread)

    def among(self, operations: NDArray[Any]) -> Samples:
        """Return the samples that were taken after or just before one of some operations, the last of each thread; of
        the other threads, those since the first of all.
        """
        first = np.full(int(self.thread.max(initial=-1)) + 1, np.iinfo(np.int64).max)
        inside = operations["thread"] < len(first)
        np.minimum.at(first, operations["thread"][inside], operations["number"][inside].astype(np.int64))
        calls = np.isin(self.thread, operations["thread"])
        begin = int(operations["start"].min()) if len(operations) else 0
        kept = np.where(calls, self.operation >= first[self.thread], self.time >= begin)
        return Samples(
            self.thread[kept],
            self.time[kept],
            self.operation[kept],
            self.nanoseconds[kept],
            self.stack[kept],
            self.stacks,
        )


def decode_samples(chunks: Iterable[Chunk], functions: Functions, *, modules: int, threads: int) -> Samples:
    """Decode the samples of a recording; `modules` and `threads` are how many it has.

    Raises:
        DamageError: A sample is cut, or names what does not exist.
    """
    numbers: dict[tuple[int, bytes], int] = {}
    stacks: list[SampledStack] = []
    rows: list[tuple[int, int, int, int, int]] = []
    for header, sample, content in read_records(chunks, "FFM_CHUNK_SAMPLES", "ffm_sample", frame_bytes):
        if header["thread"] >= threads:
            raise DamageError(f"a sample names the thread {header['thread']} of {threads}")
        number = numbers.setdefault((int(sample["frames"]), content.tobytes()), len(stacks))
        if number == len(stacks):
            native, python = split_frames(sample, content)
            stacks.append(
                SampledStack(_checked(native_frames(native), modules), [python_frame(row, functions) for row in python])
            )
        times = int(sample["time"]), int(sample["operation"]), int(sample["nanoseconds"])
        rows.append((int(header["thread"]), *times, number))
    table = np.array(rows, np.uint64).reshape(-1, 5)
    if (table >= 1 << 60).any():
        raise DamageError("a sample stands for longer than can be")
    thread_of, time, operation, nanoseconds, stack = table.astype(np.int64).T
    return Samples(thread_of, time, operation, nanoseconds, stack, stacks)


def _checked(frames: list[Place], modules: int) -> list[Place]:
    highest = max((module for module, _ in frames if module is not None), default=-1)
    if highest >= modules:
        raise DamageError(f"a sample names the module {highest} of {modules}")
    return frames
