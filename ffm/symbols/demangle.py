"""C++ names as a programmer wrote them."""

from __future__ import annotations

import ctypes
import ctypes.util
import functools
import re
from collections.abc import Callable

_CLONE = re.compile(
    r"(?: ?[\[(](?:clone )?(?:\.[A-Za-z_]+(?:\.\d+)*)+[\])]"  # GNU: "f(int) [clone .cold]", LLVM: "f(int) (.cold)"
    r"|\.(?:cold|part|isra|constprop|lto_priv|llvm)(?:\.\d+)*"  # "f.part.0", as in C
    r")+$"
)


def without_clone_suffix(name: str) -> str:
    """Drop what a compiler appends to the name of a part or copy of a function.

    GCC and Clang split functions (`.cold`, `.part.0`) and specialize them (`.isra.0`, `.constprop.0`); in the source
    these are all one function. Works on mangled and on demangled names.
    """
    return _CLONE.sub("", name)


def demangle(name: str) -> str:
    """Demangle an Itanium C++ name with the machine's C++ runtime.

    Names that are not mangled or cannot be demangled come back unchanged except for the suffix of a compiler's clone,
    and so do all names on a machine without a C++ runtime.
    """
    name = without_clone_suffix(name)
    if not name.startswith("_Z"):
        return name
    run = _runtime_demangler()
    return (run(name) if run else None) or name


@functools.cache
def _runtime_demangler() -> Callable[[str], str | None] | None:
    """Return `__cxa_demangle` of libstdc++ or libc++abi (Itanium C++ ABI, section 3.4), or None."""
    for candidate in ("libstdc++.so.6", "libc++abi.so.1", ctypes.util.find_library("stdc++")):
        if candidate is not None:
            try:
                return _demangler_of(ctypes.CDLL(candidate))
            except (OSError, AttributeError):
                continue
    return None


def _demangler_of(library: ctypes.CDLL) -> Callable[[str], str | None]:
    function = library.__cxa_demangle
    function.argtypes = [ctypes.c_char_p, ctypes.c_void_p, ctypes.c_void_p, ctypes.POINTER(ctypes.c_int)]
    function.restype = ctypes.c_void_p
    release = ctypes.CDLL(None).free
    release.argtypes = [ctypes.c_void_p]
    release.restype = None

    def run(name: str) -> str | None:
        status = ctypes.c_int()
        pointer = function(name.encode(), None, None, ctypes.byref(status))
        if not pointer:
            return None
        try:
            return ctypes.string_at(pointer).decode(errors="replace")
        finally:
            release(pointer)

    return run
