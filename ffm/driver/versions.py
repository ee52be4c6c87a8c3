"""Which form of a driver function `cuGetProcAddress` returns, by name, CUDA version and default-stream variant."""

from __future__ import annotations

import tomllib
from functools import cache
from pathlib import Path

from ffm.driver.catalogue import DefaultStream, DriverFunction, load_catalogue

TABLE = Path(__file__).with_name("versions.toml")


@cache
def since() -> dict[str, int]:
    """Return the CUDA version (1000 * major + 10 * minor) that introduced each exported form in the table."""
    with TABLE.open("rb") as file:
        return {str(name): int(version) for name, version in tomllib.load(file).items()}


def newest() -> int:
    """Return the newest version for which the table has all forms."""
    return max(since().values())


def form_of(base: str, version: int, *, per_thread: bool) -> DriverFunction | None:
    """Return the catalogue's form of the function `base` in a version of CUDA, or None if there is none.

    This is the newest form that the version has. If `per_thread` is set, it is the variant with one default stream per
    thread, if that exists (CUDA Driver API, cuGetProcAddress).
    """
    forms = [
        (function.default_stream is DefaultStream.PER_THREAD, since()[function.name], function)
        for function in load_catalogue().functions
        if function.base == base and since().get(function.name, version + 1) <= version
    ]
    fitting = [form for form in forms if per_thread or not form[0]]
    return max(fitting, key=lambda form: form[:2])[2] if fitting else None
