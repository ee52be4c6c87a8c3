"""Calls with senseless arguments through the hooks: the driver refuses them, and ffm must not fail before it does."""

from __future__ import annotations

from pathlib import Path

import pytest
from hooked_calls import check_answers

from ffm.vgpu.paths import library_folder


@pytest.mark.parametrize("mode", [8, 19], ids=["tracing", "memory"])
def test_the_virtual_driver_answers_through_the_hooks_as_bare(
    mode: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    driver = library_folder() / "libcuda.so.1"
    monkeypatch.setenv("LD_LIBRARY_PATH", str(driver.parent))
    answers = check_answers(driver, tmp_path, mode)
    assert "cuInit 0" in answers
    assert "after:cuLaunchKernelEx:zero 1" in answers
