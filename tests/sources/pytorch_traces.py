"""Traces in the form of PyTorch's profiler, made up for tests."""

from __future__ import annotations

import gzip
import json
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

PROCESS, DEFAULT = 42, 7


@dataclass
class Trace:
    """Events of one file, in microseconds; each call gets a correlation number."""

    events: list[dict[str, Any]] = field(default_factory=list)
    about: dict[str, Any] = field(default_factory=dict)
    correlation: int = 0

    def add(self, category: str, name: str, start: float, end: float, pid: object, tid: object, **args: object) -> None:
        event = {"ph": "X", "cat": category, "name": name, "pid": pid, "tid": tid, "ts": start, "dur": end - start}
        self.events.append({**event, "args": args})

    def call(
        self,
        name: str,
        start: float,
        end: float,
        *,
        process: int = PROCESS,
        thread: int | None = None,
        number: int | None = None,
    ) -> int:
        self.correlation += 1
        number = self.correlation if number is None else number
        self.add("cuda_runtime", name, start, end, process, thread or process, correlation=number)
        return number

    def kernel(self, name: str, start: float, end: float, call: int, *, stream: int = DEFAULT, device: int = 0) -> None:
        where = {"device": device, "context": 1, "stream": stream, "correlation": call}
        self.add("kernel", name, start, end, device, stream, **where)

    def copy(self, way: str, start: float, end: float, call: int, count: int) -> None:
        where = {"device": 0, "context": 1, "stream": DEFAULT, "correlation": call, "bytes": count}
        self.add("gpu_memcpy", f"Memcpy {way}", start, end, 0, DEFAULT, **where)

    def wait(
        self,
        kind: str,
        call: int,
        *,
        stream: int = -1,
        event: int = -1,
        on: int = -1,
        record: int = -1,
        device: int = 0,
    ) -> None:
        of_event = {"wait_on_stream": on, "wait_on_cuda_event_record_corr_id": record, "wait_on_cuda_event_id": event}
        where = {"device": device, "context": 1, "stream": stream, "correlation": call}
        self.add("cuda_sync", kind, 0, 0, device, stream, cuda_sync_kind=kind, **where, **of_event)

    def span(self, category: str, name: str, start: float, end: float, *, process: int = PROCESS) -> None:
        self.add(category, name, start, end, process, process)

    def text(self) -> str:
        return json.dumps({"schemaVersion": 1, **self.about, "traceEvents": self.events, "displayTimeUnit": "ms"})

    def write(self, path: Path) -> Path:
        data = self.text().encode()
        path.write_bytes(gzip.compress(data) if path.suffix == ".gz" else data)
        return path


def loop(turns: int) -> Trace:
    """Ten microseconds of CPU, a launch, 50 of GPU, and a wait that nobody needs."""
    trace = Trace()
    for begin in range(0, 100 * turns, 100):
        trace.span("python_function", "train.py(7): step", begin, begin + 60)
        trace.kernel("step", begin + 6, begin + 56, trace.call("cudaLaunchKernel", begin, begin + 5))
        trace.call("cudaDeviceSynchronize", begin + 6, begin + 57)
    trace.call("cudaEventQuery", 100 * turns, 100 * turns + 1)
    return trace
