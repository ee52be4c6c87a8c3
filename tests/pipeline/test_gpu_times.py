"""Stage 3 times the GPU's work by events: they agree with the virtual GPU's own times."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from ffm.results.columnar.columns import Columns
from ffm.results.columnar.tables import read_table
from ffm.vgpu.paths import sample
from tests.conftest import Ffm

UNKNOWNS = 30

KERNELS_NS = (400_000, 6_000_000)
"""What the sample's two kernels take on the virtual GPU, each once for all unknowns but the last."""

SMALL_GAP_NS = 100_000
"""Most between the first event and the arrival of short work (`ffm/instrument/native/collector/gpu_times.c`)."""

COPIED_GB_PER_S = 20
COPY_NS = 1500 + (1 << 20) / COPIED_GB_PER_S
"""Of each copy of `arriving.cu`: the virtual GPU's latency, and 1 MiB at that speed."""

QUEUED_GAP_NS = 10_000
"""More than the virtual GPU takes from one operation to the next."""


def usual(nanoseconds: np.ndarray) -> float:
    """Return the lower quartile: a thread that loses its processor between two calls records an event late."""
    return float(np.quantile(nanoseconds, 0.25))


@pytest.fixture(scope="module")
def results(ffm: Ffm, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("gpu-times")
    with pytest.MonkeyPatch.context() as patch:
        for stage in ("baseline", "memory"):
            patch.setenv("VGPU_TIMES", str(folder / stage))
            done = ffm("stage", stage, "--results", folder / "results", "--", sample("gaussian"), UNKNOWNS)
            assert done.code == 0, done.err
    return folder


def test_launches_are_timed_as_the_virtual_gpu_took_for_them(results: Path) -> None:
    (written,) = results.glob("memory.*")
    spans = np.array([tuple(map(int, line.split())) for line in written.read_text().splitlines()])
    lasting = spans[:, 2] - spans[:, 1]
    took = np.sort(lasting[lasting >= min(KERNELS_NS)])
    table = read_table(results / "results" / "memory-gpu-times.arrow")
    measured, arriving = table["nanoseconds"], table["arriving"]
    kernels = 2 * (UNKNOWNS - 1)
    assert len(took) == kernels
    assert kernels / 2 <= len(measured) <= kernels  # work that started late on a busy machine is left out
    assert (measured >= took[0]).all()
    assert (arriving > 0).any()
    nearest = took[np.searchsorted(took, measured, side="right") - 1]
    beyond = measured - nearest
    assert usual(beyond) <= SMALL_GAP_NS
    assert usual(beyond - arriving) <= QUEUED_GAP_NS


@pytest.fixture
def copies(
    ffm: Ffm, build_program: Callable[..., Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Callable[[str], Columns]:
    """Measure pairs of copies on a virtual GPU with these settings; return the table of GPU times."""

    def measured(settings: str) -> Columns:
        (tmp_path / "gpu.vgpu").write_text(f"{settings}copy.device_to_device = {COPIED_GB_PER_S}\n")
        monkeypatch.setenv("VGPU_CONFIGURATION", str(tmp_path / "gpu.vgpu"))
        program = build_program(Path(__file__).parent / "programs" / "arriving.cu")
        for stage in ("baseline", "memory"):
            done = ffm("stage", stage, "--results", tmp_path / "results", "--", program)
            assert done.code == 0, done.err
        return read_table(tmp_path / "results" / "memory-gpu-times.arrow")

    return measured


def test_the_way_of_work_to_a_gpu_that_became_idle_during_the_call_is_told_apart(
    copies: Callable[[str], Columns],
) -> None:
    table = copies("call.copy = 70\n")
    reached = table["arriving"] > 0
    measured, arriving = table["nanoseconds"][reached], table["arriving"][reached]
    assert len(measured) >= 10  # others arrived late on a busy machine
    assert usual(measured) > COPY_NS + QUEUED_GAP_NS
    assert usual(measured - arriving) <= COPY_NS + QUEUED_GAP_NS


def test_what_the_gpu_takes_for_an_event_is_no_work_of_the_program(copies: Callable[[str], Columns]) -> None:
    """On an H200, a kernel of 6.8 µs lies between events that are 9.2 µs apart."""
    table = copies("event.time = 200\n")
    queued = table["nanoseconds"][table["arriving"] == 0]
    assert len(queued) >= 10
    assert COPY_NS <= usual(queued) <= COPY_NS + QUEUED_GAP_NS
