"""Runs every test marked `virtual_gpu` in another process, which has loaded the virtual driver.

A crash or a hang then fails one test, and the driver's threads stay out of pytest's process. The tests of one file
share a process until one of them fails; a test marked `virtual_gpu(fresh=True)` gets its own.
"""

from __future__ import annotations

import importlib
import multiprocessing
from concurrent.futures import ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from pathlib import Path
from typing import Any

import pytest

SECONDS = 60

CHILDREN = multiprocessing.get_context("forkserver")
"""Forks of a process that has imported what takes longest, a third of a second, and never loads the driver."""
CHILDREN.set_forkserver_preload(["numpy", "pytest", "cuda.bindings.driver"])


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line("markers", "virtual_gpu(fresh=False): runs in another process, on the virtual driver")


def run_test(module: str, name: str, arguments: dict[str, Any]) -> None:
    """Import the test's module and call the test; runs in the child."""
    getattr(importlib.import_module(module), name)(**arguments)


class Worker:
    """The process that runs tests, for the file for which it was started."""

    def __init__(self) -> None:
        self._pool: ProcessPoolExecutor | None = None
        self._file: Path | None = None

    def call(self, item: pytest.Function, fresh: bool) -> None:
        if fresh or item.path != self._file:
            self.stop()
        if self._pool is None:
            self._pool = ProcessPoolExecutor(1, mp_context=CHILDREN)
            self._file = None if fresh else item.path
        arguments = {name: item.funcargs[name] for name in item._fixtureinfo.argnames}
        try:
            self._pool.submit(run_test, item.module.__name__, item.originalname, arguments).result(SECONDS)
        except BaseException:
            self.stop()
            raise

    def stop(self) -> None:
        """Stop the process, even if it hangs."""
        if self._pool is not None:
            for process in (self._pool._processes or {}).values():
                process.kill()
            self._pool.shutdown()
        self._pool = None
        self._file = None


WORKER = Worker()


@pytest.hookimpl(tryfirst=True)
def pytest_pyfunc_call(pyfuncitem: pytest.Function) -> bool | None:
    marker = pyfuncitem.get_closest_marker("virtual_gpu")
    if marker is None:
        return None
    try:
        WORKER.call(pyfuncitem, marker.kwargs.get("fresh", False))
    except TimeoutError:
        pytest.fail(f"hung for {SECONDS} seconds", pytrace=False)
    except BrokenProcessPool:
        pytest.fail("the test's process died", pytrace=False)
    return True


def pytest_sessionfinish() -> None:
    WORKER.stop()
