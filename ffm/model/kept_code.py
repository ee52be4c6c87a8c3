"""Where the compiled code of kernels is kept between runs, and under which names."""

from __future__ import annotations

import functools
import hashlib
import os
from collections.abc import Callable
from pathlib import Path
from types import FunctionType
from typing import Any, get_type_hints

from ffm.cache import private_cache

INNER = "compiled_with_kernels"
"""The attribute of functions that kernels call: how Numba compiles them."""


def may_keep(kernel: Callable[..., Any], config: Any) -> bool:
    """Return whether a kernel's code can be kept on disk, after telling Numba, by its `config`, where."""
    folder = _folder_of(kernel)
    if folder is not None and folder != _beside(kernel):
        config.CACHE_DIR = str(folder)
    return folder is not None


@functools.cache
def is_kept(kernel: Callable[..., Any], options: str) -> bool:
    """Return whether a kernel was compiled with these options before, by any process. Does not import Numba."""
    folder = _folder_of(kernel)
    return folder is not None and any(folder.rglob(f"*.{name_of(kernel, options)}-*.nbi"))


def name_of(kernel: Callable[..., Any], options: str) -> str:
    """Return the name of a kernel's file on disk, without what Numba adds; it names all that the code depends on."""
    digest = hashlib.sha256("\n".join([_constants(kernel, options), *_layouts(kernel)]).encode()).hexdigest()[:12]
    return f"{kernel.__name__}-{digest}"


@functools.cache
def _constants(kernel: Callable[..., Any], options: str) -> str:
    """Return a digest of how a kernel is compiled, and of what is from other files: plain values, and functions with
    theirs.

    Numba renews compiled code on disk only when the kernel's own file changes.
    """
    assert isinstance(kernel, FunctionType)
    parts = [options]
    for name in sorted(kernel.__code__.co_names):
        value: Any = kernel.__globals__.get(name)
        if hasattr(value, INNER):
            code = value.__code__
            seen = repr((code.co_consts, code.co_names, code.co_varnames))
            parts += [code.co_code.hex(), seen, _constants(value, options)]
        elif isinstance(value, bool | int | float | str | tuple):
            parts.append(f"{name}={value!r}")
    return hashlib.sha256("\n".join(parts).encode()).hexdigest()[:12]


def _layouts(kernel: Callable[..., Any]) -> list[str]:
    """Return the names and fields of the tuples that a kernel takes, and of those in these. Compiled code finds fields
    by their places, and Numba cannot read what it kept for a tuple that has another name now.
    """
    return [layout for kind in get_type_hints(kernel).values() for layout in _layouts_of(kind)]


@functools.cache
def _layouts_of(kind: Any) -> tuple[str, ...]:
    """Return the same of a tuple, or nothing of another type. Finding out what hints mean takes long."""
    if not (isinstance(kind, type) and issubclass(kind, tuple)):
        return ()
    fields = get_type_hints(kind)
    own = f"{kind.__module__}.{kind.__qualname__}: {', '.join(fields)}"
    return (own, *(layout for field in fields.values() for layout in _layouts_of(field)))


def _beside(kernel: Callable[..., Any]) -> Path:
    assert isinstance(kernel, FunctionType)
    return Path(kernel.__code__.co_filename).parent / "__pycache__"


def _folder_of(kernel: Callable[..., Any]) -> Path | None:
    """Return where a kernel's code is kept, if it can be.

    What lies there is executed. So it lies where `NUMBA_CACHE_DIR` says, or beside the source if this user may write
    there, or in the user's own cache (`ffm.cache`), which nobody else can write to; else nothing is kept.
    """
    if os.environ.get("NUMBA_CACHE_DIR"):
        return Path(os.environ["NUMBA_CACHE_DIR"])
    beside = _beside(kernel)
    nearest = next(path for path in (beside, *beside.parents) if path.exists())
    if nearest.is_dir() and os.access(nearest, os.W_OK | os.X_OK):
        return beside
    cache = private_cache()
    return None if cache is None else cache / "numba"
