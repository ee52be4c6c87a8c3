"""How much memory a process may still take: what the machine has free, and what its control groups leave to it."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

UNLIMITED = 1 << 62


def free_bytes(root: Path = Path("/")) -> int:
    """Return how many bytes this process can still take without others having to give theirs up.

    That is what the kernel says is available (proc(5), `MemAvailable`), or what the process's control groups leave of
    their limits (cgroups(7), both versions), whichever is less. `root` is where `/proc` and `/sys` lie.
    """
    return min([_available(root), *_left_by_groups(root)])


def _available(root: Path) -> int:
    for line in (root / "proc/meminfo").read_text().splitlines():
        name, _, amount = line.partition(":")
        if name == "MemAvailable":
            return int(amount.split()[0]) * 1024
    return UNLIMITED


def _left_by_groups(root: Path) -> Iterator[int]:
    """Yield what each control group with a limit leaves, from the process's own group up to the root."""
    try:
        memberships = (root / "proc/self/cgroup").read_text().splitlines()
    except OSError:
        return
    for membership in memberships:
        _, controllers, path = membership.split(":", 2)
        if controllers == "":
            top, limit, usage = "sys/fs/cgroup", "memory.max", "memory.current"
        elif "memory" in controllers.split(","):
            top, limit, usage = "sys/fs/cgroup/memory", "memory.limit_in_bytes", "memory.usage_in_bytes"
        else:
            continue
        group = root / top / path.lstrip("/")
        while group.is_relative_to(root / top):
            left = _number(group / limit) - _number(group / usage, 0) + _cache(group)
            yield max(left, 0)
            group = group.parent


def _cache(group: Path) -> int:
    """Return the bytes of files that a group's usage counts, and that the kernel gives up when memory is needed."""
    try:
        statistics = dict(line.split() for line in (group / "memory.stat").read_text().splitlines())
        # Version 1 counts the groups below a group apart.
        names = ("inactive_file", "active_file")
        return sum(int(statistics.get(f"total_{name}", statistics.get(name, 0))) for name in names)
    except (OSError, ValueError):
        return 0


def _number(path: Path, otherwise: int = UNLIMITED) -> int:
    """Return the number in a file; `otherwise` if it is not there, or says `max`."""
    try:
        return int(path.read_text())
    except (OSError, ValueError):
        return otherwise
