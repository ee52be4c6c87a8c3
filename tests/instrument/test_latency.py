"""Measuring how long a wait takes beyond the GPU's work: on the virtual GPU, and without one."""

from __future__ import annotations

from pathlib import Path

import pytest

from ffm.instrument.probing.latency import wait_latency
from ffm.instrument.probing.latency_probe import (
    COPIES,
    REPETITIONS,
    measured_copies,
    measured_latencies,
    measured_pinning,
)
from ffm.instrument.probing.probe_driver import Driver, ProbeError
from ffm.vgpu.paths import library_folder


def test_it_is_known_of_a_driver_with_a_gpu() -> None:
    found = wait_latency(library_folder() / "libcuda.so.1")
    assert found.reason == ""
    assert found.least > 0
    assert found.pinning_call > 0
    assert found.copied_byte > 0


def test_without_a_driver_the_reason_is_given(tmp_path: Path) -> None:
    found = wait_latency(tmp_path / "libcuda.so.1")
    assert found.least == 0
    assert "cannot be loaded" in found.reason


class Recorded(Driver):
    """A driver whose GPU clock says that the work took `work_ms`, and that counts its calls."""

    def __init__(self, work_ms: float) -> None:
        self.work_ms = work_ms
        self.calls: list[str] = []

    def exports(self, name: str) -> bool:
        return name != "cuEventElapsedTime"

    def __call__(self, call: str, *arguments: object) -> None:
        self.calls.append(self.name(call))
        if self.calls[-1] == "cuEventElapsedTime_v2":
            arguments[0]._obj.value = self.work_ms  # type: ignore[attr-defined]


def test_of_what_a_driver_refuses_nothing_is_said() -> None:
    class Refusing(Recorded):
        def __call__(self, call: str, *arguments: object) -> None:
            raise ProbeError(f"{call} returned the error 801")

    assert measured_pinning(Refusing(0.0)) == []
    assert measured_copies(Refusing(0.0)) == []


def test_copies_within_the_gpus_memory_are_timed_by_the_gpu() -> None:
    assert measured_copies(Recorded(2.0)) == COPIES * [2_000_000]


@pytest.mark.parametrize("work_ms", [0.0, 1e6])
def test_the_work_itself_does_not_count(work_ms: float) -> None:
    driver = Recorded(work_ms)
    found = measured_latencies(driver)
    assert len(found) == REPETITIONS
    assert all((one > 0) == (work_ms == 0) for one in found)
    assert "cuEventElapsedTime_v2" in driver.calls
