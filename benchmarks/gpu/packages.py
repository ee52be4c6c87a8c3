"""The Python packages of a check on another machine: `python packages.py` prints those that pack.sh fetches.

`python packages.py FOLDER` compresses the wheels in a folder as far as Python's `zipfile` can still unpack them.
"""

from __future__ import annotations

import sys
import zipfile
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path

NEEDED = ("click", "jinja2", "numba", "numpy", "pyarrow", "rich", "yaml")
"""Modules that a machine for GPU programs has."""

PACKED = {
    "frida": "frida",
    "msgspec": "msgspec",
    "orjson": "orjson",
    "platformdirs": "platformdirs",
    "elftools": "pyelftools",
    "capstone": "capstone",
    "cffi": "cffi",
    "pycparser": "pycparser",
    "symbolic": "symbolic",
    "xxhash": "xxhash",
}
"""Modules that such a machine lacks, with the distribution that holds each."""

UNUSED = ("perfetto", "snakemake")
"""Dependencies of ffm that no step of the check imports."""


def compress(wheel: Path) -> None:
    """Rewrite a wheel with LZMA, which makes Frida's a quarter smaller; pip cannot install it then."""
    smaller = wheel.with_suffix(".smaller")
    with zipfile.ZipFile(wheel) as old, zipfile.ZipFile(smaller, "w", zipfile.ZIP_LZMA) as new:
        for name in old.namelist():
            new.writestr(name, old.read(name))
    smaller.replace(wheel)


def main(arguments: list[str]) -> int:
    """Print the distributions to fetch, or compress what was fetched; return the exit status."""
    if not arguments:
        print(*PACKED.values())
        return 0
    with ProcessPoolExecutor() as pool:
        list(pool.map(compress, Path(arguments[0]).glob("*.whl")))
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
