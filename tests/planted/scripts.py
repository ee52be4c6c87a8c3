"""Random programs of launches, copies, waits and accesses over several streams and threads, as lists of steps.

Streams: 0 is the legacy default stream, 1 a blocking stream, 2 and 3 are independent ones. Every buffer is pinned
host memory with its own device memory. The steps happen one after the other, each on its host thread, which hands over
to the thread of the next step; the GPU works in parallel.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from hypothesis import strategies as st

LEGACY, BLOCKING = 0, 1
STREAMS, BUFFERS, EVENTS, THREADS = 4, 3, 2, 3

OPERANDS = {
    "launch": ("stream",),
    "download": ("stream", "buffer"),
    "upload": ("stream", "buffer"),
    "download_now": ("buffer",),
    "upload_now": ("buffer",),
    "wait_device": (),
    "wait_stream": ("stream",),
    "wait_event": ("event",),
    "record": ("event", "stream"),
    "order": ("stream", "event"),
    "read": ("buffer",),
    "write": ("buffer",),
    "elapsed": ("event", "other"),
}
"""What a step does, and on what. `…_now` are the synchronous transfers, on the legacy default stream; `wait_…` are
explicit synchronizations; `order` makes a stream wait for an event; `elapsed` queries the time between two.
"""

WORKS = frozenset({"launch", "download", "upload", "download_now", "upload_now"})
MARKS = frozenset({"record", "order"})
WAITS = frozenset({"download_now", "upload_now", "wait_device", "wait_stream", "wait_event"})
"""Steps that wait for the GPU and get a verdict."""


@dataclass(frozen=True, slots=True)
class Step:
    """One action of the program. Unused operands are 0."""

    operation: str
    thread: int = 0
    stream: int = 0
    buffer: int = 0
    event: int = 0
    other: int = 0

    def __str__(self) -> str:
        operands = [str(getattr(self, name)) for name in OPERANDS[self.operation]]
        return " ".join([str(self.thread), self.operation, *operands])


Script = list[Step]


def text_of(script: Script) -> str:
    """A line for each step, as the interpreter reads it."""
    return "".join(f"{step}\n" for step in script)


@st.composite
def steps(draw: st.DrawFn) -> Step:
    """Any step; accesses and waits are more frequent than the rest, as in real programs."""
    names = [*OPERANDS, "download", "upload", "read", "write", "wait_stream", "wait_device"]
    operation = draw(st.sampled_from(names))
    bounds = {"stream": STREAMS, "buffer": BUFFERS, "event": EVENTS, "other": EVENTS}
    operands = {name: draw(st.integers(0, bounds[name] - 1)) for name in OPERANDS[operation]}
    step = Step(operation, thread=draw(st.integers(0, THREADS - 1)), **operands)
    return replace(step, stream=LEGACY) if operation.endswith("_now") else step
