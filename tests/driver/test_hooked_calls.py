"""Calls with senseless arguments through the hooks: the driver refuses them, and ffm must not fail before it does."""

from __future__ import annotations

from pathlib import Path

import pytest

from ffm.instrument.modes import Mode
from ffm.vgpu.paths import library_folder
from tests.driver.hooked_calls import check_answers


@pytest.mark.parametrize("mode", [Mode.HOST, Mode.CONTENTS | Mode.WATCH | Mode.GPU_TIMES], ids=["tracing", "memory"])
def test_the_virtual_driver_answers_through_the_hooks_as_bare(
    mode: Mode, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    driver = library_folder() / "libcuda.so.1"
    monkeypatch.setenv("LD_LIBRARY_PATH", str(driver.parent))
    answers = check_answers(driver, tmp_path, mode)
    assert "cuInit 0" in answers
    assert "after:cuLaunchKernelEx:zero 1" in answers
