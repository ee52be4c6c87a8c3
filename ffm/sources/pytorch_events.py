"""The events of a trace of PyTorch's profiler, as far as ffm reads them."""

from __future__ import annotations

import msgspec


class Event(msgspec.Struct):
    """What the reader needs of an event."""

    ph: str = ""
    cat: str = ""
    name: str = ""
    pid: int | float | str | None = None
    tid: int | float | str | None = None
    ts: float | None = None
    dur: float | None = None
    args: msgspec.Raw = msgspec.Raw(b"{}")


class Arguments(msgspec.Struct):
    """What the reader needs of the arguments of CUDA's events."""

    correlation: int = -1
    stream: int = -1
    device: int = -1
    context: int = -1
    bytes: int = 0
    wait_on_stream: int = -1
    wait_on_cuda_event_record_corr_id: int = -1
    wait_on_cuda_event_id: int = -1


class Distributed(msgspec.Struct):
    """Which part of a distributed program a trace is of."""

    rank: int | None = None


class About(msgspec.Struct):
    """What the reader needs of the document besides its events."""

    baseTimeNanoseconds: int = 0  # noqa: N815
    distributedInfo: Distributed | None = None  # noqa: N815
