"""Loads drivers, calls them and unloads them again, one after the other: `load_and_unload.py ROUNDS LIBRARY...`.

Prints what `cuInit` returns, one line each.
"""

from __future__ import annotations

import _ctypes
import ctypes
import sys


def main(rounds: int, paths: list[str]) -> None:
    for _ in range(rounds):
        for path in paths:
            library = ctypes.CDLL(path)
            print(library.cuInit(0), flush=True)
            _ctypes.dlclose(library._handle)


if __name__ == "__main__":
    main(int(sys.argv[1]), sys.argv[2:])
