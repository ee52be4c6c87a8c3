"""Runs every test marked `virtual_gpu` in a process of its own that has loaded the virtual driver.

A test process that crashes or hangs then fails one test, and the driver's threads stay out of pytest's process.
"""

from __future__ import annotations

import importlib.util
import multiprocessing
import sys
from concurrent.futures import ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from pathlib import Path
from typing import Any

import pytest

SECONDS = 60


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line("markers", "virtual_gpu: runs in its own process, on the virtual driver")


def run_test(path: str, name: str, arguments: dict[str, Any]) -> None:
    """Import the test's file and call the test; runs in the child."""
    sys.path.insert(0, str(Path(path).parent))
    specification = importlib.util.spec_from_file_location(Path(path).stem, path)
    assert specification is not None
    assert specification.loader is not None
    module = importlib.util.module_from_spec(specification)
    sys.modules[specification.name] = module
    specification.loader.exec_module(module)
    getattr(module, name)(**arguments)


@pytest.hookimpl(tryfirst=True)
def pytest_pyfunc_call(pyfuncitem: pytest.Function) -> bool | None:
    if pyfuncitem.get_closest_marker("virtual_gpu") is None:
        return None
    names = pyfuncitem._fixtureinfo.argnames
    arguments = {name: pyfuncitem.funcargs[name] for name in names}
    pool = ProcessPoolExecutor(1, mp_context=multiprocessing.get_context("spawn"))
    try:
        future = pool.submit(run_test, str(pyfuncitem.path), pyfuncitem.originalname, arguments)
        future.result(timeout=SECONDS)
    except TimeoutError:
        for process in (pool._processes or {}).values():
            process.kill()
        pytest.fail(f"hung for {SECONDS} seconds", pytrace=False)
    except BrokenProcessPool:
        pytest.fail("the test's process died", pytrace=False)
    finally:
        pool.shutdown(wait=False, cancel_futures=True)
    return True
