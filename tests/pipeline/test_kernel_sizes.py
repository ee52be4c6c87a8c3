"""How many blocks and threads kernels have is recorded, and how large their device is."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np

from ffm.driver.catalogue import load_catalogue
from ffm.driver.vocabulary import Kind
from ffm.evidence.filled_devices import filled_devices
from ffm.evidence.named_work import context_devices
from ffm.instrument.recording.layout import constant
from ffm.instrument.recording.reader import read_recordings
from ffm.model.device import Fills
from tests.conftest import Ffm

PROGRAM = Path(__file__).parent / "programs" / "kernel_sizes.c"
MULTIPROCESSORS, THREADS = 132, 2048
"""Of the virtual GPU."""


def test_the_sizes_of_kernels_and_devices_are_recorded(
    ffm: Ffm, build_program: Callable[..., Path], tmp_path: Path
) -> None:
    program = build_program(PROGRAM, "-l:libcuda.so.1")
    for stage in ("baseline", "tracing"):
        done = ffm("stage", stage, "--results", tmp_path, "--", program, seconds=300)
        assert done.code == 0, done.err
    recordings = read_recordings(tmp_path / "recordings" / "tracing")
    (recording,) = recordings
    launches = [function.index for function in load_catalogue() if function.kind is Kind.LAUNCH]
    captured = (recording.operations["flags"] & constant("FFM_OPERATION_CAPTURED")) != 0
    operations = recording.operations[np.isin(recording.operations["function"], launches) & ~captured]
    shift = constant("FFM_LAUNCH_BLOCKS_SHIFT")
    size = operations["after_wait"]
    blocks, threads = size >> shift, size & ((1 << shift) - 1)
    assert blocks.tolist() == [1, 24, MULTIPROCESSORS * THREADS // 256, 0]
    assert threads.tolist() == [32, 64, 256, 0]

    devices = context_devices(recordings)
    assert {(one.multiprocessors, one.threads) for one in devices} == {(MULTIPROCESSORS, THREADS)}
    columns = {name: operations[name] for name in ("function", "flags", "after_wait")}
    columns["process"] = np.zeros(len(operations), np.int32)
    fills = filled_devices(columns, np.array([0, 0, 1, 1], np.int32), devices)
    assert fills is not None
    assert fills.tolist() == [Fills.LITTLE, Fills.LITTLE, Fills.ALL, Fills.UNKNOWN]
