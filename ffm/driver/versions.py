"""Which form of a driver function `cuGetProcAddress` returns, by name, CUDA version and default-stream variant."""

from __future__ import annotations

from ffm.driver.catalogue import DriverFunction, load_catalogue
from ffm.driver.vocabulary import DefaultStream


def newest() -> int:
    """Return the newest version of CUDA whose forms of functions the catalogue has."""
    return max(function.since for function in load_catalogue().functions)


def form_of(base: str, version: int, *, per_thread: bool) -> DriverFunction | None:
    """Return the catalogue's form of the function `base` in a version of CUDA, or None if there is none.

    This is the newest form that the version has. If `per_thread` is set, it is the variant with one default stream per
    thread, if that exists (CUDA Driver API, cuGetProcAddress).
    """
    forms = [
        (function.default_stream is DefaultStream.PER_THREAD, function.since, function)
        for function in load_catalogue().functions
        if function.base == base and function.since <= version
    ]
    fitting = [form for form in forms if per_thread or not form[0]]
    return max(fitting, key=lambda form: form[:2])[2] if fitting else None
