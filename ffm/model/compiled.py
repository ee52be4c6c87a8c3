"""Runs the kernels compiled by Numba where that pays, and as plain Python where the table is small.

Importing Numba and loading compiled code takes longer than a small table takes in plain Python, and the
viewing commands must answer at once. Both run the same source.
"""

from __future__ import annotations

import functools
import os
import tempfile
from collections.abc import Callable
from pathlib import Path
from types import FunctionType
from typing import Any, TypeVar

Function = TypeVar("Function", bound=Callable[..., Any])

PLAIN_ROWS = 20_000
"""Tables up to this many rows are not worth Numba's import (about 0.8 s; plain Python takes about 5 µs a
row)."""


def run(kernel: Callable[..., Any], rows: int, *arguments: Any) -> Any:
    """Call a function of `ffm.model.kernels` over a table of so many rows, compiled if the table is large."""
    return (compiled(kernel) if rows > PLAIN_ROWS else kernel)(*arguments)


@functools.cache
def compiled(kernel: Callable[..., Any]) -> Callable[..., Any]:
    """The compiled form of a kernel, kept on disk between runs."""
    import numba

    _ensure_cache_folder(numba.config)
    assert isinstance(kernel, FunctionType)
    named = {name: kernel.__globals__.get(name) for name in kernel.__code__.co_names}
    parts = {name: compiled(function) for name, function in named.items() if hasattr(function, _INNER)}
    whole = FunctionType(kernel.__code__, kernel.__globals__ | parts, kernel.__name__)
    whole.__module__ = kernel.__module__
    compile_it = numba.njit(cache=True, inline="always") if hasattr(kernel, _INNER) else numba.njit(cache=True)
    dispatcher: Callable[..., Any] = compile_it(whole)
    return dispatcher


def inner(function: Function) -> Function:
    """Mark a function that kernels of its own file call; it is compiled into them.

    Of its own file, because what is kept on disk is made anew when the kernel's file changes, and not when others do.
    """
    setattr(function, _INNER, True)
    return function


_INNER = "compiled_with_kernels"


def _ensure_cache_folder(config: Any) -> None:
    """Give Numba a cache folder where it would find none and refuse to compile.

    Numba tries `NUMBA_CACHE_DIR`, the folder of the source, then the user's cache folder. In an installed,
    read-only
    package under an account without a home all of them fail; the temporary directory is left.
    """
    if config.CACHE_DIR:
        return
    beside = Path(__file__).parent / "__pycache__"
    home = Path(os.environ.get("XDG_CACHE_HOME") or Path("~/.cache").expanduser())
    for folder in (beside, home):
        nearest = next((path for path in (folder, *folder.parents) if path.exists()), None)
        if nearest is not None and nearest.is_dir() and os.access(nearest, os.W_OK | os.X_OK):
            return
    config.CACHE_DIR = str(Path(tempfile.gettempdir()) / f"ffm-numba-{os.getuid()}")
