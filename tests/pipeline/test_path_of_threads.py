"""The critical path of a program whose threads use several GPUs: who started and joined them, the GPUs, the kernels."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import orjson
import pytest

from tests.conftest import Ffm

PROGRAM = Path(__file__).parent / "programs" / "two_devices.cu"
KERNEL_MS = 60
FIRST_MS, SECOND_MS = 20, 300
"""So the second thread, on the second GPU, ends last. On a busy machine all of it takes longer."""


@pytest.fixture(scope="module")
def measured(
    ffm: Ffm, build_program: Callable[..., Path], tmp_path_factory: pytest.TempPathFactory
) -> tuple[Path, dict[str, Any]]:
    """Trace the program; return the folder, and what `ffm path` says."""
    folder = tmp_path_factory.mktemp("two_devices")
    kernels = "".join(f"kernel.{name}_kernel = {KERNEL_MS * 1000}\n" for name in ("first", "second"))
    (folder / "gpu.vgpu").write_text(f"devices = 2\n{kernels}")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("VGPU_CONFIGURATION", str(folder / "gpu.vgpu"))
        done = ffm("check", "--quick", build_program(PROGRAM), FIRST_MS, SECOND_MS, folder=folder)
    assert done.code in (0, 1), done.err
    return folder, orjson.loads(ffm("path", "--json", "--all", folder=folder).out)


def test_who_started_and_joined_each_thread_is_recorded(measured: tuple[Path, dict[str, Any]]) -> None:
    """The second thread was started and joined by one that never calls the driver, and so by the main thread."""
    folder, _ = measured
    [path] = folder.rglob("tracing.json")
    one, other = sorted(orjson.loads(path.read_bytes())["threads"], key=lambda life: life["created"])
    assert one["parent"] == other["parent"] == one["joiner"] == other["joiner"]
    assert len({one["parent"], one["thread"], other["thread"]}) == 3
    assert one["created"] < other["created"] < other["joined"] <= one["joined"]


def test_the_path_goes_through_the_thread_that_ends_last(measured: tuple[Path, dict[str, Any]]) -> None:
    _, view = measured
    kernels = {row["name"]: row["path_s"] for row in view["regions"] if row["kind"] == "kernel"}
    calls = sum(row["path_s"] for row in view["regions"] if row["kind"] == "call")
    assert kernels["second_kernel"] > 0
    assert kernels["second_kernel"] + calls > 0.9 * KERNEL_MS / 1000  # a launch may return late, to a busy CPU
    assert kernels.get("first_kernel", 0.0) == 0.0
    cpu = sum(row["path_s"] for row in view["regions"] if row["kind"] == "CPU")
    assert cpu >= 0.9 * SECOND_MS / 1000


def test_each_gpu_is_idle_for_itself(measured: tuple[Path, dict[str, Any]]) -> None:
    """Each has one kernel, so that none is idle between its first and its last work."""
    _, view = measured
    assert [gpu["device"] for gpu in view["gpu"]] == [0, 1]
    for gpu in view["gpu"]:
        assert gpu["lasting_s"] > 0
        assert gpu["idle_s"] == 0


def test_the_second_gpu_can_be_made_faster(measured: tuple[Path, dict[str, Any]], ffm: Ffm) -> None:
    """Twice as fast, the run is shorter by half of its kernel; the first one's would gain nothing."""
    folder, view = measured
    [kernel] = [row for row in view["regions"] if row["name"] == "second_kernel"]
    second = orjson.loads(ffm("path", "--json", "--if", "second_kernel=2x", folder=folder).out)
    assert second["gain"]["seconds"] == pytest.approx(kernel["path_s"] / 2, rel=0.1)
    first = orjson.loads(ffm("path", "--json", "--if", "first_kernel=2x", folder=folder).out)
    assert first["gain"]["seconds"] == pytest.approx(0.0, abs=0.001)
