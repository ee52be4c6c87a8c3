"""Fixtures of tests that play a scene of `programs/edges.cu`, bare and corrected."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from ffm.remedy.plan_file import MEMORY_BYTES
from tests.remedy.applying import PROGRAMS, Corrected, Play, correct

CONFIGURATION = """
kernel.fill = 20000
kernel.fill_from_one = 20000
kernel.fill_through = 20000
device.memory = 0.0625
copy.host_to_device.pinned = 0.5
copy.device_to_host.pinned = 0.5
"""
"""A kernel of 20 ms, so that anyone who comes too early sees old bytes, and 64 MiB of device memory."""


@pytest.fixture
def slow_gpu(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The file that configures the virtual GPU of all programs in the test."""
    configuration = tmp_path / "slow.vgpu"
    configuration.write_text(CONFIGURATION)
    monkeypatch.setenv("VGPU_CONFIGURATION", str(configuration))
    return configuration


@pytest.fixture
def edges(build_program: Callable[[Path], Path]) -> Path:
    """The program whose scenes are played."""
    return build_program(PROGRAMS / "edges.cu")


@pytest.fixture
def play(edges: Path, tmp_path: Path, slow_gpu: Path) -> Play:
    """Run a scene bare and with every correction; they must not differ."""

    def run(scene: str, memory_bytes: int = MEMORY_BYTES) -> Corrected:
        corrected = correct([str(edges), scene], tmp_path, memory_bytes=memory_bytes)
        assert corrected.differences == []
        return corrected

    return run
