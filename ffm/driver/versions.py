"""Which form of a driver function `cuGetProcAddress` means: by name, version of CUDA and default-stream flavour."""

from __future__ import annotations

import tomllib
from functools import cache
from pathlib import Path

from ffm.driver.catalogue import DefaultStream, DriverFunction, load_catalogue

TABLE = Path(__file__).with_name("versions.toml")


@cache
def since() -> dict[str, int]:
    """Return the version of CUDA (1000 * major + 10 * minor) that brought each exported form that the table knows."""
    with TABLE.open("rb") as file:
        return {str(name): int(version) for name, version in tomllib.load(file).items()}


def newest() -> int:
    """Return the newest version that the table knows all forms of."""
    return max(since().values())


def form_of(base: str, version: int, *, per_thread: bool) -> DriverFunction | None:
    """Return the catalogue's form of the function `base` in a version of CUDA, or None where it has none.

    That is the newest one which the version has, in the flavour with a default stream for each thread where that is
    asked for and exists (CUDA Driver API, cuGetProcAddress).
    """
    forms = [
        (function.default_stream is DefaultStream.PER_THREAD, since()[function.name], function)
        for function in load_catalogue().functions
        if function.base == base and since().get(function.name, version + 1) <= version
    ]
    fitting = [form for form in forms if per_thread or not form[0]]
    return max(fitting, key=lambda form: form[:2])[2] if fitting else None
