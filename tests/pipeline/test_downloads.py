"""What the CPU does in a download after it began to wait is recorded, so that replays do not let it overlap."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from ffm.driver.catalogue import load_catalogue
from ffm.evidence.device_work import device_work
from ffm.evidence.operations import operation_columns
from ffm.evidence.stack_table import StackTable
from ffm.instrument.recording.reader import read_recordings
from ffm.model.device import Action
from tests.conftest import Ffm

PROGRAM = Path(__file__).parent / "programs" / "downloads.cu"
BYTES = [1 << 17, 1 << 20]
BYTES_A_NANOSECOND = 0.1
"""At which the virtual GPU's driver copies into pageable memory, at most."""


@pytest.fixture
def slow_copies(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Let the driver copy slowly, by a quarter of a MiB."""
    configuration = tmp_path / "vgpu"
    configuration.write_text(f"copy.device_to_host.staged = {BYTES_A_NANOSECOND}\ncopy.staging_chunk = 0.25\n")
    monkeypatch.setenv("VGPU_CONFIGURATION", str(configuration))


@pytest.mark.usefixtures("slow_copies")
def test_what_a_download_copies_behind_its_first_wait_is_recorded(
    ffm: Ffm, build_program: Callable[[Path], Path], tmp_path: Path
) -> None:
    results, program = tmp_path / "results", build_program(PROGRAM)
    for stage in ("baseline", "tracing"):
        done = ffm("stage", stage, "--results", results, "--", program, seconds=300)
        assert done.code == 0, done.err
    (recording,) = read_recordings(results / "recordings" / "tracing")
    operations = recording.operations
    after = operations["after_wait"]
    assert (after.astype(np.int64) <= operations["duration"] - operations["wait"]).all()
    catalogue = load_catalogue()
    assert not after[operations["function"] != catalogue["cuMemcpyDtoH_v2"].index].any()
    downloads = operations[operations["function"] == catalogue["cuMemcpyDtoH_v2"].index]
    pageable = downloads[::2]
    assert pageable["bytes"].tolist() == BYTES
    assert pageable["waits"].tolist() == [1, 4]
    assert (pageable["after_wait"] >= pageable["bytes"] / BYTES_A_NANOSECOND).all()

    columns = operation_columns([recording], StackTable())
    thread = np.zeros(len(after), np.int32)
    work = device_work(columns, thread, np.full(len(after), -1, np.int64))
    assert work.after_wait is not None
    assert (work.action[work.after_wait > 0] == Action.ENQUEUE_AND_WAIT).all()
