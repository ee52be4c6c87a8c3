"""Freed memory is kept for the next columns, and given back in the end."""

from __future__ import annotations

import subprocess
import sys

SCRIPT = """
import resource
import numpy as np
from ffm.results.memory.heap import kept_memory

COLUMN = 1 << 26

def resident():
    with open("/proc/self/statm") as file:
        return int(file.read().split()[1]) * resource.getpagesize()

np.zeros(COLUMN, np.uint8).fill(1)
bare = resident()
with kept_memory():
    np.zeros(COLUMN, np.uint8).fill(1)
    kept = resident()
after = resident()
with kept_memory(False):
    np.zeros(COLUMN, np.uint8).fill(1)
    unwanted = resident()
assert kept > bare + COLUMN // 2, (bare, kept)
assert max(after, unwanted) < bare + COLUMN // 2, (bare, after, unwanted)
"""


def test_memory_is_kept_until_the_context_ends() -> None:
    subprocess.run([sys.executable, "-c", SCRIPT], check=True)
