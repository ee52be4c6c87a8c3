"""VGPU_TIMES: what the virtual GPU did when."""

from __future__ import annotations

import itertools
import os
import subprocess
from pathlib import Path

from ffm.vgpu.paths import sample


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
    kernels = [end - start for _, start, end in times if end - start >= 400_000]
    assert len(kernels) == 2 * (unknowns - 1)
    assert all(one[2] <= other[1] for one, other in itertools.pairwise(times))


def test_speed_stretches_kernels_and_copies_alike(tmp_path: Path) -> None:
    unknowns = 6
    configuration = tmp_path / "slow.vgpu"
    configuration.write_text("speed = 0.1\nkernel.default = 400\ncopy.latency = 50\n")
    subprocess.run(
        [sample("gaussian"), str(unknowns)],
        env={**os.environ, "VGPU_CONFIGURATION": str(configuration), "VGPU_TIMES": str(tmp_path / "times")},
        stdout=subprocess.DEVNULL,
        check=True,
    )
    (written,) = tmp_path.glob("times.*")
    lengths = [int(end) - int(start) for _, start, end in map(str.split, written.read_text().splitlines())]
    assert sum(length >= 4_000_000 for length in lengths) == 2 * (unknowns - 1)
    assert all(length >= 500_000 for length in lengths if length > 0)
