"""What is remembered between runs lies in a folder of this user alone, or nowhere; measuring needs neither."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from pathlib import Path

import platformdirs
import pytest

from ffm.cache import private_cache, remember
from ffm.vgpu.paths import sample

NOWHERE = "/proc/nowhere"
"""Not even root can make a folder there."""


@pytest.fixture
def temporary(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A machine on which the home folder cannot be written to."""
    monkeypatch.setattr(platformdirs, "user_cache_dir", lambda name: f"{NOWHERE}/{name}")
    monkeypatch.setattr(tempfile, "gettempdir", lambda: str(tmp_path))
    return tmp_path


def test_without_a_home_the_cache_is_private_in_the_temporary_folder(temporary: Path) -> None:
    folder = private_cache()
    assert folder == temporary / f"ffm-cache-{os.getuid()}"
    assert folder.stat().st_mode & 0o777 == 0o700
    remember(folder / "drivers", "a.json", b"{}")
    assert (folder / "drivers" / "a.json").read_bytes() == b"{}"


@pytest.mark.parametrize("what", ["link", "open", "file"])
def test_what_somebody_else_may_have_put_there_is_not_believed(temporary: Path, what: str) -> None:
    folder = temporary / f"ffm-cache-{os.getuid()}"
    (temporary / "elsewhere").mkdir(mode=0o700)
    if what == "link":
        folder.symlink_to(temporary / "elsewhere")
    elif what == "open":
        folder.mkdir()
        folder.chmod(0o777)
    else:
        folder.touch()
    assert private_cache() is None
    remember(None, "a.json", b"{}")
    assert not any((temporary / "elsewhere").iterdir())


def test_a_disk_that_is_full_only_means_that_nothing_is_remembered() -> None:
    remember(Path(NOWHERE), "a.json", b"{}")


def test_a_program_is_measured_without_a_home(tmp_path: Path) -> None:
    environment = {**os.environ, "HOME": NOWHERE, "XDG_CACHE_HOME": f"{NOWHERE}/cache", "TMPDIR": str(tmp_path)}
    command = [sys.executable, "-m", "ffm", "stage", "baseline", "--results", tmp_path / "results", "--", sample("als")]
    done = subprocess.run([*map(str, command), "1"], env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert list((tmp_path / f"ffm-cache-{os.getuid()}" / "drivers").glob("*.json"))
