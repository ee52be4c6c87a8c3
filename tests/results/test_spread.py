"""Blocks of the analysis in other processes: the same result, whatever happens to these."""

from __future__ import annotations

import dataclasses
import os
import shutil
import signal
from collections.abc import Iterator
from concurrent.futures import Executor, Future, ProcessPoolExecutor
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import pytest

from ffm.errors import FfmError
from ffm.model.estimators.replay import Replayed
from ffm.results.spread import Spread, mapped, shared
from ffm.stages.analysis.findings import Findings
from ffm.stages.analysis.results import analyse
from ffm.stages.analysis.workers import spread_over
from tests.results.loop_findings import loop_timeline
from tests.results.replayed_findings import measured


class Told(Executor):
    """Runs blocks in this process, and counts them."""

    def __init__(self) -> None:
        self.blocks = 0

    def submit(self, block: Any, /, *arguments: Any, **named: Any) -> Future[Any]:
        self.blocks += 1
        done: Future[Any] = Future()
        try:
            done.set_result(block(*arguments, **named))
        except Exception as error:
            done.set_exception(error)
        return done


class Killing(Executor):
    """Gives blocks to another executor, and kills one of its processes after the first."""

    def __init__(self, executor: Executor, worker: int) -> None:
        self._executor = executor
        self._worker = worker
        self.killed = False

    def submit(self, block: Any, /, *arguments: Any, **named: Any) -> Future[Any]:
        future = self._executor.submit(block, *arguments, **named)
        if not self.killed:
            os.kill(self._worker, signal.SIGKILL)
            self.killed = True
        return future


@pytest.fixture
def findings() -> Findings:
    """A run with problems at several sites, some of whose waits are required."""
    found = measured(loop_timeline())
    required = np.arange(len(found.timeline)) % 3 == 0
    return dataclasses.replace(found, sharing=required)


def same(findings: Findings, spread: Spread) -> bool:
    """Return whether an analysis with other processes has the same numbers, all of them."""
    whole, _ = analyse(findings)
    divided, _ = analyse(findings, spread.replays)
    return msgspec.json.encode(divided) == msgspec.json.encode(whole)


def test_any_executor_gives_the_same_analysis(findings: Findings, tmp_path: Path) -> None:
    executor = Told()
    spread = Spread(lambda: executor, tmp_path)
    assert same(findings, spread)
    assert executor.blocks > 2
    assert not spread.failures
    assert not list(tmp_path.iterdir())


def test_few_rows_start_no_process(findings: Findings, tmp_path: Path) -> None:
    def start() -> Executor:
        raise AssertionError("started")

    spread = Spread(start, tmp_path, least_visits=10**9)
    assert same(findings, spread)
    assert not spread.failures


def test_what_cannot_be_shared_is_done_here(findings: Findings, tmp_path: Path) -> None:
    spread = Spread(Told, tmp_path / "missing")
    assert same(findings, spread)
    assert "FileNotFoundError" in spread.failures[0]


def test_a_block_that_fails_is_done_here(findings: Findings, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(path: str, digest: bytes, number: int, version: str) -> Replayed:
        raise OSError("no such file system there")

    monkeypatch.setattr("ffm.results.spread._replay_block", fail)
    spread = Spread(Told, tmp_path)
    assert same(findings, spread)
    assert spread.failures[0] == "OSError: no such file system there"


class Newer(Told):
    """Asks for another version of ffm than the one here."""

    def submit(self, block: Any, /, *arguments: Any, **named: Any) -> Future[Any]:
        return super().submit(block, *arguments[:-1], "99.0")


def test_another_version_of_ffm_does_no_block(findings: Findings, tmp_path: Path) -> None:
    spread = Spread(Newer, tmp_path)
    assert same(findings, spread)
    assert "and 99.0 here" in spread.failures[0]


def test_columns_are_shared_and_stay_as_they_are(tmp_path: Path) -> None:
    columns = {"a": np.arange(1000), "b": np.zeros(3, np.uint8), "none": np.zeros(0, np.int32)}
    with shared(columns, tmp_path) as (path, digest):
        found = mapped(str(path), digest)
        assert {name: column.tolist() for name, column in found.items()} == {
            name: column.tolist() for name, column in columns.items()
        }
        found["a"][0] = 7  # a kernel is compiled for columns that may be written to
        mapped.cache_clear()
        assert mapped(str(path), digest)["a"][0] == 0
    mapped.cache_clear()
    assert not path.exists()


def test_a_file_that_somebody_else_put_there_is_not_unpickled(tmp_path: Path) -> None:
    with shared({"a": np.arange(3)}, tmp_path) as (path, digest), shared(print, tmp_path) as (other, _):
        shutil.copyfile(other, path)
        with pytest.raises(RuntimeError, match="is not the file that was written for this analysis"):
            mapped(str(path), digest)


def test_a_pool_gives_the_same_analysis_though_one_process_is_killed(findings: Findings, tmp_path: Path) -> None:
    with ProcessPoolExecutor(2) as pool:
        worker = pool.submit(os.getpid).result()
        killing = Killing(pool, worker)
        spread = Spread(lambda: killing, tmp_path)
        assert same(findings, spread)
        assert killing.killed


@pytest.fixture(scope="module")
def cluster() -> Iterator[Any]:
    """Two local workers of Dask, of one thread each."""
    distributed = pytest.importorskip("distributed", reason="Dask's distributed is not installed")
    with distributed.LocalCluster(
        n_workers=2, threads_per_worker=1, processes=True, dashboard_address=None, silence_logs=50
    ) as cluster:
        yield cluster


def test_two_workers_of_dask_give_the_same_analysis(findings: Findings, tmp_path: Path, cluster: Any) -> None:
    with spread_over(cluster.scheduler_address, tmp_path) as spread:
        assert same(findings, spread)
    assert not spread.failures


def test_a_worker_of_dask_that_is_killed_costs_no_result(findings: Findings, tmp_path: Path, cluster: Any) -> None:
    with spread_over(cluster.scheduler_address, tmp_path) as given:
        executor = given.start()
        killing = Killing(executor, executor.submit(os.getpid).result())
        assert same(findings, Spread(lambda: killing, tmp_path))
        assert killing.killed


def test_without_a_scheduler_the_message_says_how_to_start_one(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("distributed", reason="Dask's distributed is not installed")
    monkeypatch.setattr("ffm.stages.analysis.workers.ANSWER_S", 1)
    refused = pytest.raises(FfmError, match=r"no Dask scheduler answers at tcp://127.0.0.1:1 .*dask scheduler")
    with refused, spread_over("tcp://127.0.0.1:1", tmp_path):
        pass


def test_an_address_at_which_no_scheduler_can_be_is_not_tried(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    distributed = pytest.importorskip("distributed", reason="Dask's distributed is not installed")
    monkeypatch.setattr(distributed, "Client", lambda *_, **__: pytest.fail("tried"))
    with pytest.raises(FfmError, match="nowhere://x"), spread_over("nowhere://x", tmp_path):
        pass


def test_without_distributed_the_message_names_the_extra(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    with pytest.raises(FfmError, match=r"ffm\[distributed\]"), spread_over("tcp://127.0.0.1:1", tmp_path):
        pass
