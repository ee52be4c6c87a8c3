"""Prints what a driver's `cuGetProcAddress` returns: `entry_points.py LIBRARY`, one line per pointer.

A line is: requested name, CUDA version, flags, the pointer's distance from `cuInit`. It runs in a separate process
because driver libraries do not unload cleanly.
"""

from __future__ import annotations

import ctypes
import sys

from ffm.driver.catalogue import load_catalogue

VERSIONS = (2000, 3020, 4000, 6050, 7000, 8000, 9000, 10000, 11000, 11020, 11040, 12000, 12030, 12050, 13000)
LEGACY_STREAM, PER_THREAD_STREAM = 1, 2


def main(path: str) -> None:
    library = ctypes.CDLL(path)
    first = ctypes.cast(library.cuInit, ctypes.c_void_p).value or 0
    pointer = ctypes.c_void_p()
    for name in sorted({function.base for function in load_catalogue().functions}):
        for version in VERSIONS:
            for flags in (0, LEGACY_STREAM, PER_THREAD_STREAM):
                found = library.cuGetProcAddress(name.encode(), ctypes.byref(pointer), version, ctypes.c_uint64(flags))
                if found == 0 and pointer.value:
                    print(name, version, flags, pointer.value - first)


if __name__ == "__main__":
    main(sys.argv[1])
