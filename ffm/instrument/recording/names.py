"""The names in a recording: of the files that a process has mapped, and of what its handles launch."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from ffm.instrument.recording.checks import LARGEST
from ffm.instrument.recording.chunks import Chunk, DamageError, read_records


@dataclass(frozen=True, slots=True)
class RecordedModule:
    """A mapped file. `base` is its lowest mapped address."""

    path: str
    build_id: str
    base: int


@dataclass(frozen=True, slots=True)
class RecordedKernel:
    """The name of what a handle launches, from `time` until the handle has another one."""

    time: int
    handle: int
    name: str


def read_modules(chunks: Iterable[Chunk]) -> list[RecordedModule]:
    """Return the mapped files in the order of their numbers."""
    records = read_records(chunks, "FFM_CHUNK_MODULES", "ffm_module", lambda module: int(module["path_bytes"]))
    return [
        RecordedModule(
            path=bytes(path).decode(errors="replace"),
            build_id=bytes(module["build_id"][: int(module["build_id_bytes"])]).hex(),
            base=int(module["base"]),
        )
        for _, module, path in records
    ]


def read_kernels(chunks: Iterable[Chunk]) -> list[RecordedKernel]:
    """Return what handles launch, in the order in which it was recorded."""
    kernels: list[RecordedKernel] = []
    for _, kernel, name in read_records(
        chunks, "FFM_CHUNK_KERNELS", "ffm_kernel_name", lambda kernel: int(kernel["bytes"])
    ):
        if kernel["time"] >= LARGEST:
            raise DamageError("a kernel is named later than can be")
        named = bytes(name).decode(errors="replace")
        kernels.append(RecordedKernel(int(kernel["time"]), int(kernel["handle"]), named))
    return kernels
