"""Where the builds of NVIDIA's driver are that `fetch_real_drivers.sh` fetched."""

from __future__ import annotations

import os
from pathlib import Path

import platformdirs
import pytest


def real_drivers() -> list[Path]:
    """Return the fetched builds, sorted by path."""
    folder = os.environ.get("FFM_REAL_DRIVERS") or Path(platformdirs.user_cache_dir("ffm")) / "real-drivers"
    return sorted(path for path in Path(folder).rglob("libcuda.so.*") if not path.is_symlink())


DRIVERS = real_drivers()

_RELEASES = sorted(path.name for path in DRIVERS)
EACH_DRIVER = [
    pytest.param(path, id=path.name, marks=[] if path.name in (_RELEASES[0], _RELEASES[-1]) else pytest.mark.thorough)
    for path in DRIVERS
]
"""For tests of one build at a time: `make test` tries the oldest and the newest one, `make thorough` the others."""

fetched_only = pytest.mark.skipif(
    not DRIVERS, reason="no builds of NVIDIA's driver here: `make drivers` fetches them where apt can"
)
