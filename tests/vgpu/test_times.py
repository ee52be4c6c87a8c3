"""VGPU_TIMES: what the virtual GPU did when."""

from __future__ import annotations

import itertools
import os
import subprocess
import sys
from pathlib import Path

import pytest

from ffm.vgpu.paths import sample


def lengths_of_operations(folder: Path, settings: str) -> list[int]:
    """Run a small elimination with these settings, and return how long each operation lasted, in nanoseconds."""
    configuration = folder / "given.vgpu"
    configuration.write_text(settings)
    subprocess.run(
        [sample("gaussian"), "6"],
        env={**os.environ, "VGPU_CONFIGURATION": str(configuration), "VGPU_TIMES": str(folder / "times")},
        stdout=subprocess.DEVNULL,
        check=True,
    )
    (written,) = folder.glob("times.*")
    return [int(end) - int(start) for _, start, end in map(str.split, written.read_text().splitlines())]


def test_each_operation_is_written_down_in_the_order_of_time(tmp_path: Path) -> None:
    unknowns = 6
    subprocess.run(
        [sample("gaussian"), str(unknowns)],
        env={**os.environ, "VGPU_TIMES": str(tmp_path / "times")},
        stdout=subprocess.DEVNULL,
        check=True,
    )
    (written,) = tmp_path.iterdir()
    times = [tuple(map(int, line.split())) for line in written.read_text().splitlines()]
    assert all(submitted <= start <= end for submitted, start, end in times)
    lengths = [end - start for _, start, end in times]
    assert lengths.count(400_000) == lengths.count(6_000_000) == unknowns - 1  # of both kernels
    assert all(one[2] <= other[1] for one, other in itertools.pairwise(times))


def test_speed_stretches_kernels_and_copies_alike(tmp_path: Path) -> None:
    lengths = lengths_of_operations(tmp_path, "speed = 0.1\nkernel.default = 400\ncopy.latency = 50\n")
    assert sum(length >= 4_000_000 for length in lengths) == 10
    assert all(length >= 500_000 for length in lengths if length > 0)


def test_kernels_last_as_configured_or_as_measured(tmp_path: Path) -> None:
    long = {}
    for choice in ("model", "measured"):
        (tmp_path / choice).mkdir()
        lengths = lengths_of_operations(tmp_path / choice, f"kernel.default = 100000\ndevice.time = {choice}\n")
        long[choice] = sum(length >= 100_000_000 for length in lengths)
    assert long["model"] == 10
    assert long["measured"] < 10


def test_a_wrong_choice_names_those_there_are(tmp_path: Path) -> None:
    configuration = tmp_path / "wrong.vgpu"
    configuration.write_text("device.time = guessed\n")
    ended = subprocess.run(
        [sample("gaussian"), "6"],
        env={**os.environ, "VGPU_CONFIGURATION": str(configuration)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert "'guessed' is none of 'measured', 'model'" in ended.stderr


_BESIDE = """
from cuda.bindings import driver
from tests.vgpu.ptx import HEAD
from tests.vgpu.virtual_gpu import Held, checked, context
with context():
    text = HEAD + ".visible .entry small() { ret; }\\n.visible .entry large() { ret; }\\n"
    module = checked(driver.cuModuleLoadData(text.encode()))
    streams = [checked(driver.cuStreamCreate(1)) for _ in range(3)]
    held, released = Held(streams[0]), checked(driver.cuEventCreate(0))
    checked(driver.cuEventRecord(released, streams[0]))
    for name, blocks, stream in ((b"small", 1, streams[1]), (b"large", 16, streams[2])):
        checked(driver.cuStreamWaitEvent(stream, released, 0))
        kernel = checked(driver.cuModuleGetFunction(module, name))
        checked(driver.cuLaunchKernel(kernel, blocks, 1, 1, 1024, 1, 1, 0, stream, 0, 0))
    held.release()
    checked(driver.cuCtxSynchronize())
"""


@pytest.mark.parametrize(
    ("small", "large", "beside"), [(10_000, 1_000, 2_000), (1_000, 4_000, 4_500)], ids=["all the time", "at first"]
)
def test_kernel_that_could_fill_the_device_starts_in_what_is_left(
    tmp_path: Path, small: int, large: int, beside: int
) -> None:
    configuration = tmp_path / "given.vgpu"
    times = f"kernel.small = {small}\nkernel.large = {large}\n"
    configuration.write_text(f"device.code = pass\ndevice.multiprocessors = 1\n{times}")
    subprocess.run(
        [sys.executable, "-c", _BESIDE],
        env={
            "PATH": "/usr/bin:/bin",
            "PYTHONPATH": str(Path(__file__).parents[2]),
            "VGPU_CONFIGURATION": str(configuration),
            "VGPU_TIMES": str(tmp_path / "times"),
        },
        check=True,
    )
    (written,) = tmp_path.glob("times.*")
    kernels = sorted(tuple(map(int, line.split()))[1:] for line in written.read_text().splitlines())[-2:]
    assert kernels[0][0] == kernels[1][0]
    assert sorted(end - start for start, end in kernels) == sorted([1_000 * small, 1_000 * beside])
