"""Calls all functions of a driver that the catalogue knows: `call_everything.py LIBRARY OUTPUT SKIPPED`.

Meant for a machine without a GPU, where each function returns an error: the results must be the same with and without
hooks. Each function is called before `cuInit` and after it failed, with zeros and with addresses of zeros as arguments.
A line of OUTPUT is a call and its result; a call that ended the process has none. SKIPPED names such calls.
"""

from __future__ import annotations

import ctypes
import mmap
import os
import sys
from pathlib import Path

from ffm.driver.catalogue import ABSENT, load_catalogue
from ffm.driver.vocabulary import Shape

ZEROS = 1 << 16


def main(path: str, output: str, skipped: str) -> None:
    library = ctypes.CDLL(path)
    skip = set(skipped.split(","))
    functions = [function for function in load_catalogue().functions if hasattr(library, function.name)]
    # Some functions write past their arguments: not into memory of the interpreter.
    zeros = mmap.mmap(-1, 4 * ZEROS)
    address = ctypes.addressof(ctypes.c_char.from_buffer(zeros)) + ZEROS
    with Path(output).open("w") as lines:
        for when in ("before", "after"):
            if when == "after":
                lines.write(f"cuInit {library.cuInit(0)}\n")
            for function in functions:
                for argument in (0, address):
                    name = f"{when}:{function.name}:{'address' if argument else 'zero'}"
                    if function.name == "cuInit" or name in skip:
                        continue
                    ctypes.memset(address - ZEROS, 0, 4 * ZEROS)
                    lines.write(name)
                    lines.flush()
                    numbers = {function.count, function.height, function.value}
                    if function.shape is not Shape.BATCH:
                        numbers.add(function.bytes)
                    elif function.bytes != ABSENT:
                        numbers.add(function.bytes + 1)
                    arguments = [
                        ctypes.c_uint64(0 if place in numbers else argument) for place in range(function.arity)
                    ]
                    lines.write(f" {getattr(library, function.name)(*arguments)}\n")

    os._exit(0)  # what the driver does at the end is not tested


if __name__ == "__main__":
    main(*sys.argv[1:])
