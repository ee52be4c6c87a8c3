"""The words by which `catalogue.toml` says what a driver function does.

The native build also reads them (`ffm.driver.generate`), before any package is installed, so this module needs only the
standard library. Their order is that of the numbers in C.
"""

from __future__ import annotations

from enum import StrEnum


class Kind(StrEnum):
    """What a driver function does."""

    SYNCHRONIZATION = "synchronization"
    TRANSFER = "transfer"
    SET = "set"
    FREE = "free"
    ALLOCATION = "allocation"
    LAUNCH = "launch"
    HOST_FUNCTION = "host_function"
    MIGRATION = "migration"
    QUERY = "query"
    TIMING = "timing"
    ORDER = "order"
    GRAPH = "graph"
    STREAM = "stream"
    EVENT = "event"
    CONTEXT = "context"
    MODULE = "module"
    ENTRY = "entry"
    MAPPING = "mapping"
    """Provides another address of existing memory."""
    SHARING = "sharing"
    """Lets another process use device memory, or this one use another's."""
    VIEW = "view"
    """Describes memory as a texture or a tensor map, by which kernels then reach it."""
    RELEASE = "release"
    """Destroys an object that kernels or streams may still use, and does not wait."""


class Memory(StrEnum):
    """Which memory an allocation, a free or a migration is about."""

    NONE = "none"
    DEVICE = "device"
    PINNED = "pinned"
    MANAGED = "managed"
    REGISTERED = "registered"
    ASYNCHRONOUS = "asynchronous"
    """From a stream-ordered memory pool."""
    ARRAY = "array"
    PHYSICAL = "physical"
    """A handle of virtual memory management, which has no address yet."""
    RESERVED = "reserved"
    """An address range of virtual memory management, which has no memory yet."""
    MAPPED = "mapped"
    """Physical memory mapped into a reserved range."""
    IMPORTED = "imported"


class Awaits(StrEnum):
    """Which work is over when a synchronization or a query succeeds."""

    NOTHING = "nothing"
    CONTEXT = "context"
    """All work of the context `handle`, or of the current one."""
    STREAM = "stream"
    EVENT = "event"
    """The work before the last record of the event `handle`."""


class Effect(StrEnum):
    """What a call does beyond its kind."""

    NONE = "none"
    RECORD_EVENT = "record_event"
    """Records the event `handle` on the stream."""
    RECORD_CONTEXT = "record_context"
    """Records the event `handle` after the work of all streams of a context."""
    WAIT_EVENT = "wait_event"
    """Makes later work of the stream wait for the event `handle`."""
    HOLD = "hold"
    """Makes later work of the stream wait for something that the CPU, or another process, does."""
    SHARE_EVENT = "share_event"
    """Lets another process record the event `handle`."""
    BEGIN_CAPTURE = "begin_capture"
    """Makes the stream's calls part of a graph from now on."""
    END_CAPTURE = "end_capture"
    REACH_PEER = "reach_peer"
    """Lets kernels of the current context access the memory of another device."""
    END_CONTEXT = "end_context"
    """Destroys a context, with its events, streams and memory."""
    FIND_VARIABLE = "find_variable"
    """Returns the address of a variable of the device code."""
    LAUNCH_KERNEL = "launch_kernel"
    """Launches the kernel `handle`."""
    UNLOAD_CODE = "unload_code"
    """Unloads device code: other kernels can get the handles of its own."""
    WRITE_VALUE = "write_value"
    """Writes a value to memory when the stream gets there."""
    LAUNCH_GRAPH = "launch_graph"
    """Launches the executable graph `handle`."""
    MAKE_GRAPH = "make_graph"
    """Makes an executable graph from the graph `handle`."""
    UPDATE_GRAPH = "update_graph"
    """Makes the executable graph `handle` do what the graph `description` does."""
    END_GRAPH = "end_graph"
    """Destroys the executable graph `handle`."""
    CHANGE_KERNEL = "change_kernel"
    """Changes a kernel of the executable graph `handle`. The next ones change nodes of other kinds."""
    CHANGE_COPY = "change_copy"
    CHANGE_SET = "change_set"
    CHANGE_CHILD = "change_child"
    """The graph `description` takes the place of one inside."""
    CHANGE_NODE = "change_node"
    MAKE_STREAM = "make_stream"
    END_STREAM = "end_stream"
    ENTER_CONTEXT = "enter_context"
    """Makes the context `handle` current, or returns one."""
    RELEASE_CONTEXT = "release_context"
    """Destroys a context if this was the last reference to it."""
    PART_DEVICE = "part_device"
    """Makes or uses a part of a device, with an order of work of its own."""
    LOAD_CODE = "load_code"
    HAND_OUT_CALLS = "hand_out_calls"
    """Returns functions that no hook sees."""
    VIEW_FOR_WRITING = "view_for_writing"
    """Kernels may also write the memory that the call describes."""


class Direction(StrEnum):
    """Where a transfer's bytes come from and go to."""

    NONE = "none"
    HOST_TO_DEVICE = "host_to_device"
    DEVICE_TO_HOST = "device_to_host"
    DEVICE_TO_DEVICE = "device_to_device"
    GENERIC = "generic"
    """Determined by the addresses, or by the memory types in the descriptor."""


class Shape(StrEnum):
    """How the arguments describe the memory that a call touches; see the head of `catalogue.toml`."""

    PLAIN = "plain"
    MEMSET_1D = "memset_1d"
    MEMSET_2D = "memset_2d"
    """`bytes` is the width in elements, `height` the number of rows, `pitch` the bytes from row to row."""
    PITCHED = "pitched"
    """`bytes` is the width in bytes, `height` the rows; the call writes the pitch where `pitch` points."""
    COPY_2D = "copy_2d"
    """`source` points to a `CUDA_MEMCPY2D`."""
    COPY_3D = "copy_3d"
    """`source` points to a `CUDA_MEMCPY3D`."""
    COPY_3D_PEER = "copy_3d_peer"
    """`source` points to a `CUDA_MEMCPY3D_PEER`."""
    BATCH = "batch"
    """`destination`, `source` and `bytes` point to arrays of `count` items."""
    BATCH_3D = "batch_3d"
    """`source` points to `count` (or one) `CUDA_MEMCPY3D_BATCH_OP`."""
    ARRAY = "array"
    """One side is a CUDA array, `handle`."""
    LAUNCH_CONFIGURATION = "launch_configuration"
    """`source` points to a `CUlaunchConfig`, which holds the stream."""
    RESOURCE = "resource"
    """`source` points to a `CUDA_RESOURCE_DESC`, which holds the address, unless it is an array's."""
    OPAQUE = "opaque"
    """The descriptor is not read."""
    NARROW = "narrow"
    """From before CUDA 3.2: sizes and device addresses are 32 bits wide, including those that the call writes."""


class DefaultStream(StrEnum):
    """What stream 0 means to a function."""

    LEGACY = "legacy"
    PER_THREAD = "per_thread"
