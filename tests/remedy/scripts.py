"""Random programs without races: what each operation must come after is ensured by some wait or by CUDA's order.

A clock says, for each stream, how many of its operations come before a point. Each stream, event and the CPU has one.
An operation may touch memory only if all conflicting operations come before it; otherwise the script synchronizes
first, in a random way.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial

LEGACY, OWN, BLOCKING, NON_BLOCKING = 0, 1, (2, 3), (4, 5)
SIZES = (256, 1000, 1024, 1100, 4096)
LARGEST = 8192
OFFSETS = (0, 0, 1000, 1024, 4096)
"""Where in host memory, in elements of four bytes, a download may start: several can be on one page."""

Clock = dict[str, int]


def merged(*clocks: Clock) -> Clock:
    """Return the later of each stream's counts."""
    result: Clock = {}
    for clock in clocks:
        for stream, count in clock.items():
            result[stream] = max(result.get(stream, 0), count)
    return result


@dataclass
class Memory:
    """The accesses to some memory that later ones must respect: (stream, number of the operation on it)."""

    write: tuple[str, int] | None = None
    reads: list[tuple[str, int]] = field(default_factory=list)
    written: int = 0
    """Elements with defined values."""


class Script:
    """Writes a random program."""

    def __init__(
        self,
        seed: int,
        *,
        streams: tuple[int, ...],
        threads: int,
        kernels_on_host: bool = False,
        host_functions: bool = True,
        ordered_memory: bool = False,
    ) -> None:
        self.random = random.Random(seed)
        self.streams, self.threads = streams, threads
        self.kernels_on_host, self.host_functions = kernels_on_host, host_functions
        self.ordered_memory = ordered_memory
        self.lines: list[str] = []
        self.thread = 0
        self.cpu: Clock = {}
        self.clocks: dict[str, Clock] = {}
        self.counts: Clock = {}
        self.events: dict[int, Clock] = {}
        self.device: dict[int, Memory] = {}
        self.sizes: dict[int, int] = {}
        self.ordered: set[int] = set()
        """Device blocks from the driver's pool: cudaFree does not wait for them."""
        self.host = {number: Memory(written=LARGEST) for number in range(8)}

    def text(self, operations: int) -> str:
        """Write a program of about this many operations."""
        for _ in range(operations):
            self.thread = self.random.randrange(self.threads)
            self.random.choice(self.choices())()
        return "\n".join(self.lines) + "\n"

    def choices(self) -> list[Callable[[], None]]:
        many: list[Callable[[], None]] = (
            [self.kernel] * 5 + [self.upload] * 3 + [self.download] * 2 + [self.reallocate] * 3
        )
        if self.kernels_on_host:
            many.append(self.kernel_on_host)
        if self.host_functions:
            many.append(self.call_host)
        few = [self.copy, self.set, self.write, self.read, self.renew, self.synchronize, self.allocate]
        if not self.ordered_memory:
            few.append(self.memory)  # when the pool returns memory depends on time
        return [*many, *few]

    # Streams and clocks.

    def name(self, stream: int) -> str:
        return f"own{self.thread}" if stream == OWN else str(stream)

    def is_blocking(self, name: str) -> bool:
        return name not in ("0", *map(str, NON_BLOCKING))

    def next_clock(self, name: str) -> Clock:
        """Return what an operation enqueued now on the stream comes after."""
        parts = [self.cpu, self.clocks.get(name, {})]
        if name == "0":
            parts += [clock for other, clock in self.clocks.items() if self.is_blocking(other)]
        elif self.is_blocking(name):
            parts.append(self.clocks.get("0", {}))
        return merged(*parts)

    def enqueue(self, stream: int) -> tuple[str, int]:
        name = self.name(stream)
        clock = self.next_clock(name)
        self.counts[name] = self.counts.get(name, 0) + 1
        clock[name] = self.counts[name]
        self.clocks[name] = clock
        return name, self.counts[name]

    def everything(self) -> Clock:
        return merged(self.cpu, *self.clocks.values())

    # Keeping operations in order.

    def conflicts(self, memory: Memory, writing: bool) -> list[tuple[str, int]]:
        before = [memory.write] if memory.write else []
        return before + (memory.reads if writing else [])

    def order(self, accesses: list[tuple[Memory, bool]], stream: int | None) -> None:
        """Order the accesses, by the stream or by the CPU, after everything that conflicts with them."""
        wanted = [access for memory, writing in accesses for access in self.conflicts(memory, writing)]
        clock = self.cpu if stream is None else self.next_clock(self.name(stream))
        missing = [(name, number) for name, number in wanted if clock.get(name, 0) < number]
        for name, number in missing:
            clock = self.cpu if stream is None else self.next_clock(self.name(stream))
            if clock.get(name, 0) >= number:
                continue
            reachable = not name.startswith("own") or name == f"own{self.thread}"
            number_of_stream = OWN if name.startswith("own") else int(name)
            ways: list[Callable[[], None]] = [self.synchronize_all, self.free_something]
            if reachable:
                ways += [partial(self.synchronize_stream, number_of_stream)] * 2
                ways += [partial(self.synchronize_event, number_of_stream)]
                if stream is not None:
                    ways += [partial(self.wait_event, number_of_stream, stream)]
            self.random.choice(ways)()

    def order_if_there(self, number: int, writing: bool, stream: int) -> None:
        """The same for a device block that may have been freed to synchronize."""
        if number in self.device:
            self.order([(self.device[number], writing)], stream)

    def synchronize_all(self) -> None:
        self.say("synchronize")
        self.cpu = self.everything()

    def synchronize_stream(self, stream: int) -> None:
        self.say("synchronize_stream", d=stream)
        self.cpu = merged(self.cpu, self.clocks.get(self.name(stream), {}))

    def record(self, stream: int) -> int:
        event = self.random.randrange(4)
        self.say("record", event, d=stream)
        self.enqueue(stream)
        self.events[event] = self.clocks[self.name(stream)]
        return event

    def synchronize_event(self, stream: int) -> None:
        event = self.record(stream)
        self.say("synchronize_event", event)
        self.cpu = merged(self.cpu, self.events[event])

    def wait_event(self, of: int, stream: int) -> None:
        event = self.record(of)
        self.say("wait_event", event, d=stream)
        self.enqueue(stream)
        name = self.name(stream)
        self.clocks[name] = merged(self.clocks[name], self.events[event])

    def free_something(self) -> None:
        """Note that a free waits for all work, as far as the program can rely on it."""
        waiting = sorted(set(self.device) - self.ordered)
        if not waiting:
            self.synchronize_all()
        else:
            self.free(self.random.choice(waiting))

    # Operations.

    def say(self, operation: str, a: int = 0, b: int = 0, c: int = 0, d: int = 0) -> None:
        self.lines.append(f"{self.thread} {operation} {a} {b} {c} {d}")

    def touch(self, memory: Memory, access: tuple[str, int], writing: bool) -> None:
        if writing:
            memory.write, memory.reads = access, []
        else:
            memory.reads.append(access)

    def allocate(self) -> None:
        unused = [number for number in range(8) if number not in self.device]
        if not unused:
            return
        number, size = self.random.choice(unused), self.random.choice(SIZES)
        self.device[number], self.sizes[number] = Memory(), size
        if self.ordered_memory and self.random.random() < 0.6:
            stream = self.random.choice(self.streams)
            self.say("allocate_ordered", number, size, 0, stream)
            self.touch(self.device[number], self.enqueue(stream), writing=True)
            self.ordered.add(number)
        else:
            self.say("allocate", number, size)
        if self.random.random() < 0.5:
            self.upload(number)
        else:
            self.set(number)

    def free(self, number: int) -> None:
        if number in self.ordered:
            stream = self.random.choice((None, *self.streams, *self.streams))
            self.order([(self.device[number], True)], stream)
            self.say("free" if stream is None else "free_ordered", number, d=stream or 0)
            if stream is not None:
                self.enqueue(stream)
            self.ordered.remove(number)
        else:
            self.say("free", number)
            self.cpu = self.everything()
        del self.device[number], self.sizes[number]

    def reallocate(self) -> None:
        """Free and allocate in the loop, as the samples do."""
        if self.device:
            self.free(self.random.choice(sorted(self.device)))
        self.allocate()

    def defined(self) -> int | None:
        """A device block with contents."""
        ready = [number for number in sorted(self.device) if self.device[number].written]
        return self.random.choice(ready) if ready else None

    def kernel(self) -> None:
        to, source = self.defined(), self.defined()
        if to is None or source is None:
            return
        stream = self.random.choice(self.streams)
        self.order([(self.device[to], True), (self.device[source], False)], stream)
        if to not in self.device or source not in self.device:
            return  # freed to synchronize
        elements = min(self.sizes[to], self.sizes[source])
        self.say(self.random.choice(["mix", "mix_slowly"]), to, source, elements, stream)
        access = self.enqueue(stream)
        self.touch(self.device[source], access, writing=False)
        self.touch(self.device[to], access, writing=True)

    def kernel_on_host(self) -> None:
        """Launch a kernel that writes pinned memory by the host's address."""
        to, source = self.random.randrange(4), self.defined()
        if source is None:
            return
        stream = self.random.choice(self.streams)
        self.order([(self.host[to], True)], stream)
        self.order_if_there(source, False, stream)
        if source not in self.device:
            return
        self.say("mix_host", to, source, self.sizes[source], stream)
        access = self.enqueue(stream)
        self.touch(self.device[source], access, writing=False)
        self.touch(self.host[to], access, writing=True)

    def call_host(self) -> None:
        """Enqueue a function on the CPU, in the order of a stream."""
        number, stream = self.random.randrange(8), self.random.choice(self.streams)
        self.order([(self.host[number], True)], stream)
        self.say("call_host", 0, number, 0, stream)
        self.touch(self.host[number], self.enqueue(stream), writing=True)

    def copy(self) -> None:
        to, source = self.defined(), self.defined()
        if to is None or source is None or to == source:
            return
        stream = self.random.choice(self.streams)
        self.order([(self.device[to], True), (self.device[source], False)], stream)
        if to not in self.device or source not in self.device:
            return
        self.say("copy", to, source, min(self.sizes[to], self.sizes[source]), stream)
        access = self.enqueue(stream)
        self.touch(self.device[source], access, writing=False)
        self.touch(self.device[to], access, writing=True)

    def set(self, number: int | None = None) -> None:
        number = self.defined() if number is None else number
        if number is None:
            return
        stream = self.random.choice((LEGACY, *self.streams))
        self.order([(self.device[number], True)], stream)
        if number not in self.device:
            return
        if stream == LEGACY:
            self.say("set", number, self.random.randrange(256))
        else:
            self.say("set_async", number, self.random.randrange(256), 0, stream)
        self.touch(self.device[number], self.enqueue(stream), writing=True)
        self.device[number].written = self.sizes[number]

    def upload(self, number: int | None = None) -> None:
        number = self.defined() if number is None else number
        if number is None:
            return
        source = self.random.randrange(8)
        stream = self.random.choice((None, None, *self.streams))
        if stream is None:
            self.order([(self.host[source], False)], None)  # a pageable source is read by the CPU
            self.order_if_there(number, True, LEGACY)
        else:
            self.order([(self.host[source], False)], None if source > 3 else stream)
            self.order_if_there(number, True, stream)
        if number not in self.device:
            return
        if stream is None:
            self.say(self.random.choice(["upload", "upload_again"]), number, source)
            access = self.enqueue(LEGACY)
            if source < 4:
                self.cpu = merged(self.cpu, self.clocks["0"])
        else:
            self.say("upload_async", number, source, 0, stream)
            access = self.enqueue(stream)
            if source < 4:
                self.touch(self.host[source], access, writing=False)
        self.touch(self.device[number], access, writing=True)
        self.device[number].written = self.sizes[number]

    def download(self) -> None:
        number, to = self.defined(), self.random.randrange(8)
        if number is None:
            return
        stream = self.random.choice((None, None, *self.streams))
        self.order([(self.host[to], True)], None)
        self.order_if_there(number, False, LEGACY if stream is None else stream)
        if number not in self.device:
            return
        if stream is None:
            self.say("download", number, to, self.random.choice(OFFSETS))
            self.enqueue(LEGACY)
            self.cpu = merged(self.cpu, self.clocks["0"])
        else:
            self.say("download_async", number, to, 0, stream)
            access = self.enqueue(stream)
            self.touch(self.device[number], access, writing=False)
            if to > 3:
                self.cpu = merged(self.cpu, self.clocks[self.name(stream)])
            else:
                self.touch(self.host[to], access, writing=True)

    def write(self) -> None:
        number = self.random.randrange(8)
        self.order([(self.host[number], True)], None)
        # Few different contents, so that uploads repeat.
        self.say("write", 0, number, self.random.randrange(1, 4))

    def read(self) -> None:
        number = self.random.randrange(8)
        self.order([(self.host[number], False)], None)
        self.say("read", 0, number, LARGEST)

    def renew(self) -> None:
        """Free pageable memory, and allocate it again."""
        number = self.random.randrange(4, 8)
        self.order([(self.host[number], True)], None)
        self.say("renew", 0, number)

    def synchronize(self) -> None:
        stream = self.random.choice(self.streams)
        ways: list[Callable[[], None]] = [
            self.synchronize_all,
            partial(self.synchronize_stream, stream),
            partial(self.synchronize_event, stream),
        ]
        self.random.choice(ways)()
        if self.random.random() < 0.3:
            self.synchronize_all()
            self.say("query", d=stream)

    def memory(self) -> None:
        self.say("memory")
