"""Runs kernels compiled by Numba if that pays, and as plain Python if the table is small.

Importing Numba and loading compiled code takes longer than processing a small table in plain Python, and the viewing
commands must answer quickly. Both ways run the same source.
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
"""Up to this many rows, importing Numba does not pay (about 0.8 s; plain Python takes about 5 µs per row)."""


def run(kernel: Callable[..., Any], rows: int, *arguments: Any) -> Any:
    """Call a function of `ffm.model.kernels` on a table of this many rows, compiled if the table is large."""
    return (compiled(kernel) if rows > PLAIN_ROWS else kernel)(*arguments)


@functools.cache
def compiled(kernel: Callable[..., Any]) -> Callable[..., Any]:
    """Return the compiled form of a kernel, which is kept on disk between runs."""
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
    """Mark a function that kernels in the same file call; it is compiled into them.

    It must be in the same file because the compiled code on disk is renewed only when the kernel's file changes.
    """
    setattr(function, _INNER, True)
    return function


_INNER = "compiled_with_kernels"


def _ensure_cache_folder(config: Any) -> None:
    """Give Numba a cache folder if it would find none and refuse to compile.

    Numba tries `NUMBA_CACHE_DIR`, the folder of the source, then the user's cache folder. All of them fail in a
    read-only installed package under an account without a home; then the temporary directory is used.
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
