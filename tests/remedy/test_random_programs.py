"""Whatever a program does, and wherever corrections are attempted, it ends and prints as it does without them."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from ffm.vgpu.paths import library_folder
from tests.remedy.applying import PROGRAMS, correct
from tests.remedy.scripts import BLOCKING, LEGACY, NON_BLOCKING, OWN, Script

SETTINGS = {
    "one stream": {"streams": (LEGACY,), "threads": 1},
    "blocking streams": {"streams": (LEGACY, *BLOCKING), "threads": 1},
    "non-blocking streams": {"streams": NON_BLOCKING, "threads": 1},
    "all streams": {"streams": (LEGACY, OWN, *BLOCKING, *NON_BLOCKING), "threads": 1},
    "threads with streams of their own": {"streams": (OWN,), "threads": 3},
    "threads and all streams": {"streams": (LEGACY, OWN, *BLOCKING, *NON_BLOCKING), "threads": 3},
}

SLOW = """
kernel.mix = 60
kernel.mix_slowly = 900
copy.host_to_device.pinned = 0.1
copy.device_to_host.pinned = 0.1
copy.host_to_device.staged = 0.5
copy.device_to_host.staged = 0.5
"""
"""Work that lasts long enough for a missing order to show."""


@pytest.mark.parametrize("seed", [1, 2, 3])
@pytest.mark.parametrize("setting", SETTINGS)
def test_corrected_programs_write_the_same(
    setting: str,
    seed: int,
    build_program: Callable[[Path], Path],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    program = build_program(PROGRAMS / "script.cu")
    configuration = tmp_path / "slow.vgpu"
    configuration.write_text(SLOW)
    monkeypatch.setenv("VGPU_CONFIGURATION", str(configuration))
    script = tmp_path / "script"
    told = b"cuFuncGetParamInfo" in (library_folder() / "libcuda.so.1").read_bytes()
    # With host functions and kernels on host memory most waits stay; without them, much is deferred.
    free = {"kernels_on_host": told, "host_functions": True} if seed == 1 else {"host_functions": False}
    script.write_text(Script(seed, **free, ordered_memory=seed == 3, **SETTINGS[setting]).text(120))  # type: ignore[arg-type]
    corrected = correct([str(program), str(script)], tmp_path, tried=seed == 2)
    assert corrected.differences == []
    assert corrected.counts["stopped"] == 0
    assert corrected.counts["allocations"] > 0
    assert corrected.counts["frees"] > 0
