"""What the virtual GPU takes where a configuration says nothing."""

from __future__ import annotations

TIMES: dict[str, float] = {
    "copy.host_to_device.pinned": 55,
    "copy.device_to_host.pinned": 55,
    "copy.host_to_device.staged": 12,
    "copy.device_to_host.staged": 12,
    "copy.device_to_device": 2000,
    "copy.peer": 50,
    "copy.set": 3500,
    "copy.latency": 1.5,
    "start.latency": 1.5,
    "start.gap": 0.8,
    "wait.latency": 1.5,
    "call.launch": 4.0,
    "call.copy": 2.5,
    "call.read_back": 7.0,
    "call.set": 2.0,
    "call.synchronize": 1.0,
    "call.event": 0.6,
    "call.allocate": 25,
    "call.free": 25,
    "call.allocate_host": 250,
    "call.free_host": 150,
    "call.register_host": 60,
    "call.allocate_pool": 1.2,
    "call.free_pool": 0.8,
    "call.create_context": 1000,
    "call.compile": 20_000,
    "call.load_kernel": 0,
}
"""By key of its configuration (`ffm/vgpu/README.md`): bandwidths in GB/s, latencies and times of calls in us."""

SIZES: dict[str, float] = {"copy.staging_size": 16, "copy.staging_chunk": 2}
"""MiB."""
