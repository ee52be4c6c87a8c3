"""PyCUDA, a third-party client of the driver, on the virtual GPU; `build_pycuda.sh` builds it by hand."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

from ffm.evidence.operations import function_name
from ffm.results.columnar.tables import read_table
from ffm.results.folder.paths import ResultsFolder
from ffm.stages.baseline import run_baseline
from ffm.stages.measure import Request
from ffm.stages.tracing import run_tracing
from ffm.vgpu.paths import library_folder

CLIENT = Path(__file__).with_name("pycuda_client.py")
ENVIRONMENT = Path(os.environ.get("FFM_PYCUDA", CLIENT.parents[2] / "build" / "pycuda" / "env"))
PYTHON = ENVIRONMENT / "bin" / "python"
ROUNDS = 20

pytestmark = pytest.mark.skipif(
    not list(ENVIRONMENT.glob("lib/python*/site-packages/pycuda")),
    reason="PyCUDA is not built for the virtual GPU: run tests/clients/build_pycuda.sh",
)


@pytest.fixture(autouse=True)
def _virtual_gpu(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LD_LIBRARY_PATH", str(library_folder()))


def test_all_bytes_arrive() -> None:
    done = subprocess.run([PYTHON, CLIENT], capture_output=True, text=True, check=False)
    assert done.stdout == "right\n", done.stderr


def test_every_wait_is_seen(tmp_path: Path) -> None:
    folder = ResultsFolder(tmp_path / "results")
    folder.root.mkdir()
    request = Request([str(PYTHON), str(CLIENT)], folder, 120.0)
    run_baseline(request)
    tracing = run_tracing(request)
    columns = read_table(folder.root / tracing.events)
    names = [function_name(number) for number in columns["function"].tolist()]
    waited = [name for name, waits in zip(names, columns["waits"].tolist(), strict=True) if waits]
    # The last free of the copies happens when the program ends.
    for name in ("cuStreamSynchronize", "cuEventSynchronize", "cuCtxSynchronize", "cuMemcpyDtoH_v2"):
        assert waited.count(name) == ROUNDS, name
    assert waited.count("cuMemFree_v2") >= ROUNDS
    assert names.count("cuMemcpyHtoDAsync_v2") == ROUNDS
