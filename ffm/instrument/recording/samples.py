"""Where a process's threads worked between driver calls, as the collector sampled it."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Any, Generic, TypeVar

import numpy as np
from numpy.typing import NDArray

from ffm.instrument.recording.layout import constant, record_type

F = TypeVar("F")
"""What the reader makes of a Python frame."""


@dataclass(frozen=True, slots=True)
class SampledStack(Generic[F]):
    """The inner frames of the program, innermost first: (module number or None, offset from its base or address).

    The first offset is an address that was executed, the others are return addresses.
    """

    frames: list[tuple[int | None, int]]
    python: list[F]


@dataclass(frozen=True, slots=True)
class Samples(Generic[F]):
    """Samples of a process, in order within each thread. Columns of length n."""

    thread: NDArray[np.int64] = field(default_factory=lambda: np.empty(0, np.int64))
    time: NDArray[np.int64] = field(default_factory=lambda: np.empty(0, np.int64))
    operation: NDArray[np.int64] = field(default_factory=lambda: np.empty(0, np.int64))
    """So many operations of its thread had been recorded; 0 if it never calls the driver."""
    nanoseconds: NDArray[np.int64] = field(default_factory=lambda: np.empty(0, np.int64))
    """Of the thread's processor time that it stands for."""
    stack: NDArray[np.int64] = field(default_factory=lambda: np.empty(0, np.int64))
    """An index into `stacks`."""
    stacks: list[SampledStack[F]] = field(default_factory=list)

    def __len__(self) -> int:
        return len(self.thread)

    def among(self, operations: NDArray[Any]) -> Samples[F]:
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


def decode_samples(
    chunks: Iterable[tuple[Any, NDArray[np.uint8]]], python_frame: Callable[[Any], F], *, modules: int, threads: int
) -> Samples[F]:
    """Decode the samples of a recording; `modules` and `threads` are how many it has.

    Raises:
        ValueError: A sample is cut, or names what does not exist; the message is a phrase.
    """
    head, frame = record_type("ffm_sample"), record_type("ffm_frame")
    python_layout = record_type("ffm_python_frame")
    numbers: dict[tuple[int, bytes], int] = {}
    stacks: list[SampledStack[F]] = []
    rows: list[tuple[int, int, int, int, int]] = []
    for chunk, content in chunks:
        if chunk["kind"] != constant("FFM_CHUNK_SAMPLES"):
            continue
        if chunk["thread"] >= threads:
            raise ValueError(f"a sample names the thread {chunk['thread']} of {threads}")
        offset, thread = 0, int(chunk["thread"])
        while offset < len(content):
            begin = offset + head.itemsize
            if begin > len(content):
                raise ValueError("a sample is cut")
            sample = content[offset:begin].view(head)[0]
            middle = begin + int(sample["frames"]) * frame.itemsize
            offset = middle + int(sample["python_frames"]) * python_layout.itemsize
            if offset > len(content):
                raise ValueError("a sample is cut")
            key = int(sample["frames"]), content[begin:offset].tobytes()
            number = numbers.setdefault(key, len(stacks))
            if number == len(stacks):
                native = _frames(content[begin:middle].view(frame), modules)
                python = [python_frame(row) for row in content[middle:offset].view(python_layout)]
                stacks.append(SampledStack(native, python))
            rows.append((thread, int(sample["time"]), int(sample["operation"]), int(sample["nanoseconds"]), number))
    table = np.array(rows, np.uint64).reshape(-1, 5)
    if (table >= 1 << 60).any():
        raise ValueError("a sample stands for longer than can be")
    thread_of, time, operation, nanoseconds, stack = table.astype(np.int64).T
    return Samples(thread_of, time, operation, nanoseconds, stack, stacks)


def _frames(rows: Any, modules: int) -> list[tuple[int | None, int]]:
    none = constant("FFM_NO_MODULE")
    found = [
        (None if module == none else int(module), int(place))
        for module, place in zip(rows["module"], rows["offset"], strict=True)
    ]
    highest = max((module for module, _ in found if module is not None), default=-1)
    if highest >= modules:
        raise ValueError(f"a sample names the module {highest} of {modules}")
    return found
