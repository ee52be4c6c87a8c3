"""Stage 5 with `--scheduler`: the workers of a Dask scheduler give the same analysis as one process."""

from __future__ import annotations

import os
import signal
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import orjson
import pytest

from ffm.errors import FfmError
from ffm.stages.analysis import workers
from tests.conftest import Ffm
from tests.stage_commands import run_stages

distributed = pytest.importorskip("distributed", reason="Dask's distributed is not installed")

PROGRAM = Path(__file__).parent / "programs" / "gated.cu"
PART = ".blocks-*"
"""What the workers need is in this file of the results folder while they work (`ffm.results.spread`)."""


@pytest.fixture
def cluster() -> Iterator[Any]:
    """Two local workers of one thread each, which are not started again."""
    with distributed.LocalCluster(
        n_workers=2, threads_per_worker=1, processes=True, dashboard_address=None, silence_logs=50
    ) as cluster:
        yield cluster


def analysed(folder: Path) -> dict[str, Any]:
    """The analysis without what differs in each writing of the same one: when, and by which process."""
    document = orjson.loads((folder / "analysis.json").read_bytes())
    return {name: part for name, part in document.items() if name not in ("runs", "checksum", "signature")}


class Watching(threading.Thread):
    """Sees whether blocks were given to the workers, and kills one of their processes then, if asked to."""

    def __init__(self, folder: Path, kill: int | None = None) -> None:
        super().__init__()
        self.folder, self.kill, self.seen, self.over = folder, kill, False, False

    def __enter__(self) -> Watching:
        self.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.over = True
        self.join()

    def run(self) -> None:
        while not self.over and not self.seen:
            if any(self.folder.glob(PART)):
                self.seen = True
                if self.kill is not None:
                    os.kill(self.kill, signal.SIGKILL)
            time.sleep(0.001)


def test_without_a_scheduler_or_its_workers_nothing_is_measured(
    ffm: Ffm, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    nowhere = ffm("run", "--scheduler", "nowhere://x", "--sample", "als", 1, folder=tmp_path)
    assert (nowhere.code, nowhere.out) == (1, "")
    (line,) = nowhere.err.splitlines()
    assert line.startswith("ffm: no Dask scheduler answers at nowhere://x") and "leave out --scheduler" in line
    assert not (tmp_path / "results" / "als" / "baseline.json").exists()

    monkeypatch.setattr(workers, "ANSWER_S", 0.1)
    with (
        distributed.LocalCluster(n_workers=0, dashboard_address=None, silence_logs=50) as idle,
        pytest.raises(FfmError, match=f"{idle.scheduler_address} has no workers: start some with `dask worker"),
    ):
        workers.require_scheduler(idle.scheduler_address)


@pytest.mark.thorough
def test_two_workers_give_the_same_analysis_as_one_process_even_if_one_is_killed(
    ffm: Ffm, build_program: Callable[[Path], Path], tmp_path: Path, cluster: Any
) -> None:
    results = tmp_path / "results"
    results.mkdir()
    words = ("--scheduler", cluster.scheduler_address, "--results", results)
    with Watching(results) as both:
        run_stages(ffm, [build_program(PROGRAM)], results, {"scheduler": cluster.scheduler_address})
    assert both.seen, "no block was given to the workers"
    shared = analysed(results)
    assert shared["sites"] and shared["points"]

    with distributed.Client(cluster) as client:
        processes = list(client.run(os.getpid).values())
    with Watching(results, processes[0]) as killing:
        again = ffm("stage", "analysis", *words, folder=tmp_path)
    assert again.code == 0, again.err
    assert killing.seen
    assert analysed(results) == shared

    alone = ffm("stage", "analysis", "--results", results, folder=tmp_path)
    assert alone.code == 0, alone.err
    assert analysed(results) == shared
