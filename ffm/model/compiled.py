"""Runs kernels compiled by Numba if that pays, and as plain Python if they process few rows.

Importing Numba and loading compiled code takes longer than processing a small table in plain Python, and the viewing
commands must answer quickly. Both ways run the same source.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from types import FunctionType
from typing import Any, TypeVar

import numpy as np

from ffm import steps
from ffm.model.kept_code import INNER, is_kept, may_keep, name_of

Function = TypeVar("Function", bound=Callable[..., Any])

PLAIN_ROWS = 20_000
"""Up to this many rows, importing Numba does not pay (about 0.8 s; plain Python takes about 5 µs per row)."""


_OPTIONS = {"nogil": True, "no_cfunc_wrapper": True}
"""How kernels are compiled: to release the interpreter lock, and not to be called from C."""


BUILT = "built_for_kernels"
"""The attribute of functions in place of which kernels call others: what makes these."""

MOST_INDEX = (1 << 62) - 1
"""No place in a column is greater."""

COMPILING = 10
"""How many times as long compiling a kernel takes as loading it, roughly."""

_done: dict[Callable[..., Any], int] = {}
"""How many rows each kernel has seen in this process."""


def run(kernel: Callable[..., Any], rows: int, *arguments: Any) -> Any:
    """Call a function of `ffm.model.kernels` on a table of this many rows, compiled if that pays."""
    _done[kernel] = _done.get(kernel, 0) + rows
    return (compiled(kernel) if rows > PLAIN_ROWS or _often(kernel) else kernel)(*arguments)


def _often(kernel: Callable[..., Any]) -> bool:
    """Return whether a kernel has processed enough rows of small tables for compiled code to have been faster."""
    done = _done[kernel]
    return done > PLAIN_ROWS * COMPILING or (done > PLAIN_ROWS and is_kept(kernel, repr(_OPTIONS)))


@functools.cache
def compiled(kernel: Callable[..., Any]) -> Callable[..., Any]:
    """Return the compiled form of a kernel, which is kept on disk between runs."""
    import numba

    if hasattr(kernel, BUILT):
        return getattr(kernel, BUILT)()  # type: ignore[no-any-return]
    assert isinstance(kernel, FunctionType)
    named = {name: kernel.__globals__.get(name) for name in kernel.__code__.co_names}
    parts = {name: compiled(function) for name, function in named.items() if hasattr(function, INNER)}
    whole = FunctionType(kernel.__code__, kernel.__globals__ | parts, kernel.__name__)
    whole.__module__ = kernel.__module__
    whole.__qualname__ = name_of(kernel, repr(_OPTIONS))
    options = getattr(kernel, INNER, None) or _options_of(kernel, numba.config)
    dispatcher: Any = numba.njit(**options)(whole)
    if hasattr(kernel, INNER):
        _widen(dispatcher, numba.types)
    return dispatcher  # type: ignore[no-any-return]


def _options_of(kernel: Callable[..., Any], config: Any) -> Any:
    """Return how a function that no other kernel calls is compiled."""
    keep = may_keep(kernel, config)
    _follow_compiler()
    steps.is_kept(kept=keep)
    return {"cache": keep, **_OPTIONS}


@functools.cache
def _follow_compiler() -> None:
    """Let those who display steps know while Numba compiles, which takes many seconds on a new machine."""
    from numba.core import event

    class Follower(event.Listener):
        def on_start(self, event: object) -> None:
            steps.compiling_begins()

        def on_end(self, event: object) -> None:
            steps.compiling_ends()

    register: Any = event.register  # has no types
    register("numba:compile", Follower())


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


def inner(function: Function) -> Function:
    """Mark a function that kernels call, in any file. It allocates nothing and returns numbers only.

    Numba counts the references to each array that a function receives, which costs more than most of these functions
    do. They need not count: their callers keep the arrays alive. `_nrt`, which switches the counting off, is not in
    Numba's documentation. Real calls, instead of inlined code, would cost as much, because each array is passed as
    seven numbers.

    A kernel itself does count. So it takes the columns that its loop over rows uses from their tuples before the loop.
    Otherwise references are counted at each row, with two calls and two atomic operations. (The loop could be one of
    these functions, too, but each of them is also compiled on its own, which takes long for a large one.)

    They are also counted at each row of a loop that puts longer arrays in the place of its own. So such a loop is one
    of these functions, which returns where there is no more room.
    """
    options = {"_nrt": False, "forceinline": True, "no_cpython_wrapper": True, "no_cfunc_wrapper": True}
    setattr(function, INNER, options)
    return function


@inner
def index(number: Any) -> int:
    """Return a number that is not negative, in a form that shows that to the compiler.

    It knows nothing of a number that was read from a column. So each access by such a number would check whether it
    counts from the end, and need the column's length for that: that is half of the time of passes over all rows.
    """
    return int(number) & MOST_INDEX


def inlined(function: Function) -> Function:
    """Mark such a function that allocates or returns arrays."""
    setattr(function, INNER, {"inline": "always"})
    return function


def built(build: Callable[[], Any]) -> Callable[[Function], Function]:
    """Mark a function in place of which kernels call another one, which `build` makes."""

    def mark(function: Function) -> Function:
        setattr(function, INNER, {})
        setattr(function, BUILT, build)
        return function

    return mark


@inlined
def longer(column: Any) -> Any:
    """Return a column with twice the room, of zeros. `np.concatenate` takes a second to compile for each type."""
    larger = np.zeros(2 * len(column), column.dtype)
    for index in range(len(column)):
        larger[index] = column[index]
    return larger
