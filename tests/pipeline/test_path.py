"""The critical path of programs whose shape is that of the worked examples of CASITA's dissertation (Dietrich 2019)."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import orjson
import pytest

from tests.conftest import Ffm

PROGRAM = Path(__file__).parent / "programs" / "shaped.cu"

Measure = Callable[..., dict[str, Any]]


@pytest.fixture
def path_of(
    ffm: Ffm, build_program: Callable[[Path], Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Measure:
    def measure(kernel_ms: float, *arguments: float) -> dict[str, Any]:
        """Trace the program with these arguments; return what `ffm path` says."""
        (tmp_path / "gpu.vgpu").write_text(f"kernel.work = {kernel_ms * 1000}\n")
        monkeypatch.setenv("VGPU_CONFIGURATION", str(tmp_path / "gpu.vgpu"))
        done = ffm("check", "--quick", build_program(PROGRAM), *arguments, folder=tmp_path)
        assert done.code in (0, 1), done.err
        view: dict[str, Any] = orjson.loads(ffm("path", "--json", "--all", folder=tmp_path).out)
        return view

    return measure


def test_kernels_are_blamed_for_the_waits_and_the_host_for_the_idle_gpu(path_of: Measure) -> None:
    """6.5.1, at 0.3 of its times: twice a kernel of 180 ms, 90 ms of the CPU beside it, a wait, and 90 ms of the CPU.
    From the first kernel to the end of the last these are 450 ms, of them 360 on the GPU; the kernels are to blame for
    90 ms of waiting each, and `blame_host` alone for the 90 ms of the idle GPU, which Figure 6.5 shares in thirds.
    """
    view = path_of(180, 2, 0, 90, 90)
    [gpu] = view["gpu"]
    [kernel] = [row for row in view["regions"] if row["kind"] == "kernel"]
    [early] = [row for row in view["patterns"] if row["name"] == "early synchronization"]
    idle = sum(row["blamed_s"] for row in view["regions"] if row["kind"] in ("CPU", "call"))
    exactly = {"abs": 1e-6}  # sums of seconds as they are shown
    assert sum(share["seconds"] for share in view["shares"]) == pytest.approx(view["length_s"], **exactly)
    assert kernel["total_s"] == pytest.approx(gpu["lasting_s"] - gpu["idle_s"], **exactly)
    assert kernel["path_s"] == pytest.approx(kernel["total_s"], **exactly)
    assert kernel["blamed_s"] == pytest.approx(early["seconds"], **exactly)
    assert idle == pytest.approx(gpu["idle_s"], **exactly)
    # However busy the machine is, nothing lasts less than it was told to.
    assert kernel["total_s"] > 0.35
    assert gpu["idle_s"] > 0.089
    assert sum(row["blamed_s"] for row in view["regions"] if row["kind"] == "CPU") > 0.089


def test_a_program_that_starves_the_gpu_has_the_shares_of_the_dissertation(path_of: Measure) -> None:
    """Table 6.3, run I-1, at a thousandth of its times: the host is on the path for 883.9 and the device for 358.7 s,
    and 91 % of the host's time there is to blame for the idle device; the rest comes before its first work. So the
    device is idle for most of the time. On a busy machine, the host takes longer.
    """
    turns, host, setup, kernels = 40, 807.1, 76.8, 358.7
    view = path_of(kernels / turns, turns, setup, 0, host / turns)
    seconds = {share["name"]: share["seconds"] for share in view["shares"]}
    assert seconds["kernels"] / (seconds["kernels"] + seconds["CPU"]) == pytest.approx(0.289, abs=0.08)
    [gpu] = view["gpu"]
    assert gpu["compute_idle_s"] / gpu["lasting_s"] == pytest.approx(0.69, abs=0.08)
    blamed = sum(row["blamed_s"] for row in view["regions"] if row["kind"] == "CPU")
    assert blamed / seconds["CPU"] == pytest.approx(0.91, abs=0.05)
