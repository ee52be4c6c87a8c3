"""The critical path of programs whose shape is that of the worked examples of CASITA's dissertation (Dietrich 2019)."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import orjson
import pytest

from ffm.results.documents.analysis import Analysis
from ffm.results.documents.files import read_owned
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


def probes_s(folder: Path) -> float:
    """Return by how many seconds the program's times are shorter because the probes took them: samples interrupt work
    that lasts until a clock says so.
    """
    [path] = folder.rglob("analysis.json")
    explained = read_owned(Analysis, path)[0].explained
    assert explained is not None
    return explained.probes_s


def total_s(view: dict[str, Any], kind: str) -> float:
    return float(sum(row["total_s"] for row in view["regions"] if row["kind"] == kind))


def test_kernels_are_blamed_for_the_waits_and_the_host_for_the_idle_gpu(path_of: Measure, tmp_path: Path) -> None:
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
    # However busy the machine is, nothing lasts less than it was told to. But a thread that loses its processor between
    # a launch and its return is in the call while the kernel runs.
    assert kernel["total_s"] + total_s(view, "call") > 0.35
    blamed = sum(row["blamed_s"] for row in view["regions"] if row["kind"] == "CPU")
    assert blamed + probes_s(tmp_path) > 0.0899


def test_a_program_that_starves_the_gpu_has_the_shares_of_the_dissertation(path_of: Measure, tmp_path: Path) -> None:
    """Table 6.3, run I-1, at a thousandth of its times: the host is on the path for 883.9 and the device for 358.7 s,
    and 91 % of the host's time there is to blame for the idle device; the rest comes before its first work. So the
    device is idle for most of the time. On a busy machine, all of it takes longer, but nothing takes less.
    """
    turns, host, setup, kernels = 40, 807.1, 76.8, 358.7
    view = path_of(kernels / turns, turns, setup, 0, host / turns)
    seconds = {share["name"]: share["seconds"] for share in view["shares"]}
    assert sum(seconds.values()) == pytest.approx(view["length_s"], abs=1e-6)
    [gpu] = view["gpu"]
    assert gpu["compute_idle_s"] + total_s(view, "kernel") == pytest.approx(gpu["lasting_s"], abs=1e-6)
    assert seconds["kernels"] + total_s(view, "call") > 0.95 * kernels / 1000
    # What the host does after the last kernel makes no work of the device come later.
    between = host / turns * (turns - 1) / 1000
    blamed = sum(row["blamed_s"] for row in view["regions"] if row["kind"] == "CPU")
    assert blamed <= gpu["compute_idle_s"] + 1e-6
    assert blamed + probes_s(tmp_path) > 0.999 * between
    assert seconds["CPU"] - blamed + probes_s(tmp_path) > 0.999 * (setup + host / turns) / 1000
