"""Drivers of NVIDIA, for the tests that need one."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.driver.real_drivers import EACH_DRIVER


@pytest.fixture(params=EACH_DRIVER)
def driver(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Path:
    """One of the fetched drivers."""
    path: Path = request.param
    # The oldest build needs a library that is next to it.
    monkeypatch.setenv("LD_LIBRARY_PATH", str(path.parent))
    return path
