"""Runs kernels compiled by Numba if that pays, and as plain Python if they process few rows.

Importing Numba and loading compiled code takes longer than processing a small table in plain Python, and the viewing
commands must answer quickly. Both ways run the same source.
"""

from __future__ import annotations

import functools
import hashlib
import os
from collections.abc import Callable
from pathlib import Path
from types import FunctionType
from typing import Any, TypeVar, get_type_hints

import numpy as np

from ffm.cache import private_cache

Function = TypeVar("Function", bound=Callable[..., Any])

PLAIN_ROWS = 20_000
"""Up to this many rows, importing Numba does not pay (about 0.8 s; plain Python takes about 5 µs per row)."""


_OPTIONS = {"nogil": True, "no_cfunc_wrapper": True}
"""How kernels are compiled: to let go of Python's lock, and not to be called from C."""


COMPILING = 10
"""How many times as long compiling a kernel takes as loading it, roughly."""

_done: dict[Callable[..., Any], int] = {}
"""How many rows each kernel has seen in this process."""


def run(kernel: Callable[..., Any], rows: int, *arguments: Any) -> Any:
    """Call a function of `ffm.model.kernels` on a table of this many rows, compiled if that pays."""
    _done[kernel] = _done.get(kernel, 0) + rows
    return (compiled(kernel) if rows > PLAIN_ROWS or _often(kernel) else kernel)(*arguments)


def _often(kernel: Callable[..., Any]) -> bool:
    """Return whether a kernel has processed so many rows of small tables that compiled code would have been faster."""
    done = _done[kernel]
    return done > PLAIN_ROWS * COMPILING or (done > PLAIN_ROWS and _is_kept(kernel))


@functools.cache
def compiled(kernel: Callable[..., Any]) -> Callable[..., Any]:
    """Return the compiled form of a kernel, which is kept on disk between runs."""
    import numba

    keep = _may_keep(numba.config)
    assert isinstance(kernel, FunctionType)
    named = {name: kernel.__globals__.get(name) for name in kernel.__code__.co_names}
    parts = {name: compiled(function) for name, function in named.items() if hasattr(function, _INNER)}
    whole = FunctionType(kernel.__code__, kernel.__globals__ | parts, kernel.__name__)
    whole.__module__ = kernel.__module__
    whole.__qualname__ = _kept_as(kernel)
    options = getattr(kernel, _INNER, {"cache": keep, **_OPTIONS})
    dispatcher: Any = numba.njit(**options)(whole)
    if hasattr(kernel, _INNER):
        _widen(dispatcher, numba.types)
    return dispatcher  # type: ignore[no-any-return]


def _widen(dispatcher: Any, types: Any) -> None:
    """Let a function that kernels call be compiled once, for numbers of 64 bits.

    Numba would compile it once more for literals, and for shorter numbers, with all that it calls. Signatures would
    have to name the types of all arguments, and `get_call_template` is not in its documentation.
    """
    ask = dispatcher.get_call_template

    def widened(kind: Any) -> Any:
        plain = types.unliteral(kind)
        return types.int64 if isinstance(plain, types.Integer) and plain.signed else plain

    dispatcher.get_call_template = lambda arguments, named: ask(tuple(map(widened, arguments)), named)


def _kept_as(kernel: Callable[..., Any]) -> str:
    """Return the name of a kernel's file on disk, but for what Numba adds."""
    digest = hashlib.sha256("\n".join([_constants(kernel), *_layouts(kernel)]).encode()).hexdigest()[:12]
    return f"{kernel.__name__}-{digest}"


@functools.cache
def _is_kept(kernel: Callable[..., Any]) -> bool:
    """Return whether a kernel was compiled before, by this process or another one. Does not import Numba."""
    assert isinstance(kernel, FunctionType)
    folder = _folder()
    if folder is None:
        return False
    beside = Path(kernel.__code__.co_filename).parent / "__pycache__" if folder == _BESIDE else folder
    return any(beside.rglob(f"*.{_kept_as(kernel)}-*.nbi"))


def _constants(kernel: Callable[..., Any]) -> str:
    """Return a digest of how a kernel is compiled, and of what is from other files: plain values, and functions with
    theirs.

    Numba renews compiled code on disk only when the kernel's own file changes.
    """
    assert isinstance(kernel, FunctionType)
    parts = [repr(_OPTIONS)]
    for name in sorted(kernel.__code__.co_names):
        value: Any = kernel.__globals__.get(name)
        if hasattr(value, _INNER):
            code = value.__code__
            parts += [code.co_code.hex(), repr((code.co_consts, code.co_names, code.co_varnames)), _constants(value)]
        elif isinstance(value, bool | int | float | str | tuple):
            parts.append(f"{name}={value!r}")
    return hashlib.sha256("\n".join(parts).encode()).hexdigest()[:12]


def _layouts(kernel: Callable[..., Any]) -> list[str]:
    """Return the names and fields of the tuples that a kernel takes, and of those in these. Compiled code finds fields
    by their places, and Numba cannot read what it kept for a tuple that has another name now.
    """
    found, left = [], list(get_type_hints(kernel).values())
    while left:
        kind = left.pop()
        if isinstance(kind, type) and issubclass(kind, tuple):
            fields = get_type_hints(kind)
            found.append(f"{kind.__module__}.{kind.__qualname__}: {', '.join(fields)}")
            left += fields.values()
    return found


def inner(function: Function) -> Function:
    """Mark a function that kernels call, in any file. It allocates nothing and returns numbers only.

    Numba counts the references to each array that a function receives, which costs more than most of these functions
    do. They need not count: whoever calls them keeps the arrays alive. `_nrt`, which switches the counting off, is not
    in Numba's documentation. Calls would cost as much, because each array is passed as seven numbers.

    A kernel itself does count. So columns that its loop over rows uses are taken from their tuples before the loop:
    else references are counted at each row, by two calls and two atomic operations. (The loop could be one of these
    functions, too, but each of them is also compiled on its own, which takes long for a large one.)
    """
    options = {"_nrt": False, "forceinline": True, "no_cpython_wrapper": True, "no_cfunc_wrapper": True}
    setattr(function, _INNER, options)
    return function


def inlined(function: Function) -> Function:
    """Mark such a function that allocates or returns arrays."""
    setattr(function, _INNER, {"inline": "always"})
    return function


_INNER = "compiled_with_kernels"
"""The attribute of such functions: how Numba compiles them."""


@inlined
def longer(column: Any) -> Any:
    """Return a column with twice the room, of zeros. `np.concatenate` takes a second to compile for each type."""
    larger = np.zeros(2 * len(column), column.dtype)
    for index in range(len(column)):
        larger[index] = column[index]
    return larger


_BESIDE = Path("__pycache__")
"""Stands for a folder beside each source."""


def _folder() -> Path | None:
    """Return where compiled code is kept, if it can be.

    What lies there is executed. So it lies where `NUMBA_CACHE_DIR` says, or beside the source if this user may write
    there, or in the user's own cache (`ffm.cache`), which nobody else can write to; else nothing is kept.
    """
    if os.environ.get("NUMBA_CACHE_DIR"):
        return Path(os.environ["NUMBA_CACHE_DIR"])
    beside = Path(__file__).parent / _BESIDE
    nearest = next(path for path in (beside, *beside.parents) if path.exists())
    if nearest.is_dir() and os.access(nearest, os.W_OK | os.X_OK):
        return _BESIDE
    cache = private_cache()
    return None if cache is None else cache / "numba"


def _may_keep(config: Any) -> bool:
    """Return whether compiled code can be kept on disk, after telling Numba where."""
    folder = _folder()
    if folder is not None and folder != _BESIDE:
        config.CACHE_DIR = str(folder)
    return folder is not None
