"""How much memory the analysis may take: what is free, less what control groups withhold."""

from __future__ import annotations

from pathlib import Path

import pytest

from ffm.results.memory.free_memory import free_bytes
from ffm.results.memory.spilling import ROW_BYTES, rows_in_memory

GIB = 1 << 30


def machine(root: Path, files: dict[str, str]) -> Path:
    for name, content in {"proc/meminfo": f"MemTotal: 1 kB\nMemAvailable: {8 * GIB // 1024} kB\n", **files}.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(content)
    return root


def test_without_control_groups_all_that_is_available_is_free(tmp_path: Path) -> None:
    assert free_bytes(machine(tmp_path, {})) == 8 * GIB


def test_a_group_of_version_2_leaves_its_limit_less_what_it_uses_but_for_files(tmp_path: Path) -> None:
    files = {
        "proc/self/cgroup": "0::/user/job\n",
        "sys/fs/cgroup/user/job/memory.max": f"{4 * GIB}\n",
        "sys/fs/cgroup/user/job/memory.current": f"{2 * GIB}\n",
        "sys/fs/cgroup/user/job/memory.stat": f"anon 1\ninactive_file {GIB}\nactive_file 0\n",
        "sys/fs/cgroup/user/memory.max": "max\n",
    }
    assert free_bytes(machine(tmp_path, files)) == 3 * GIB


def test_the_group_above_may_leave_less(tmp_path: Path) -> None:
    files = {
        "proc/self/cgroup": "0::/user/job\n",
        "sys/fs/cgroup/user/job/memory.max": "max\n",
        "sys/fs/cgroup/user/memory.max": f"{2 * GIB}\n",
        "sys/fs/cgroup/user/memory.current": f"{3 * GIB}\n",
    }
    assert free_bytes(machine(tmp_path, files)) == 0


def test_groups_of_version_1_count_as_well(tmp_path: Path) -> None:
    folder = "sys/fs/cgroup/memory/job"
    files = {
        "proc/self/cgroup": "5:cpu:/job\n4:memory:/job\n",
        f"{folder}/memory.limit_in_bytes": str(5 * GIB),
        f"{folder}/memory.usage_in_bytes": str(2 * GIB),
        f"{folder}/memory.stat": f"inactive_file 0\ntotal_inactive_file {GIB}\ntotal_active_file 0\n",
    }
    assert free_bytes(machine(tmp_path, files)) == 4 * GIB


def test_a_limit_that_the_user_sets_counts_whatever_is_free(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("ffm.results.memory.spilling.free_bytes", lambda: 2 * GIB)
    assert rows_in_memory() == GIB // ROW_BYTES
    assert rows_in_memory(512 << 20) == (512 << 20) // ROW_BYTES
