"""Which bytes of its parameters a kernel never reads, from its PTX: padding, and members that it has no use for.

A program need not set them, so they may hold anything, even something that looks like an address.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Set
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ffm.driver.kernel_text import (
    KernelText,
    Parameter,
    UnknownTypeError,
    kernels_of,
    names_of,
    size_of,
    without_comments,
)

_LOAD = re.compile(
    r"ld\.param(?:::entry)?(?P<modifiers>(?:\.\w+)*)\.(?P<type>[a-z]\d+)\s+(?:\{[^}]*\}|[^,{]+),"
    r"\s*\[\s*(?P<name>[\w$%]+)\s*(?:\+\s*(?P<offset>\d+)\s*)?\]"
)
_NAME = re.compile(r"[\w$%]+")
_VECTORS = {"v2": 2, "v4": 4, "v8": 8}


@dataclass(frozen=True, slots=True)
class UnreadBytes:
    """Bytes of a kernel's parameters that no code of its name reads: from `begin` to before `end`, counted from the
    first byte of the first parameter.
    """

    kernel: str
    begin: int
    end: int


def unread_parameters(sources: Iterable[str], wanted: Set[str] | None = None) -> list[UnreadBytes]:
    """Return the unread bytes of some PTX's kernels with `wanted` names, or of all, in the order of their names and
    places.

    Where a name occurs more than once, what any of the kernels reads counts as read. A kernel for which this is not
    known reads all.
    """
    read: dict[str, NDArray[np.bool_]] = {}
    for source in sources:
        if wanted is not None and wanted.isdisjoint(names_of(source)):
            continue
        for kernel in kernels_of(without_comments(source), wanted):
            own, before = _read(kernel), read.get(kernel.name)
            read[kernel.name] = own if before is None else _either(before, own)
    return [UnreadBytes(name, *place) for name in sorted(read) for place in _stretches(~read[name])]


def _read(kernel: KernelText) -> NDArray[np.bool_]:
    """Return for each byte of the parameters whether the kernel reads it, or may. What lies between two is read."""
    try:
        parameters = kernel.parameters()
        if not parameters:
            return np.zeros(0, np.bool_)
        read = np.ones(parameters[-1].offset + parameters[-1].size, np.bool_)
        by_name = {one.name: one for one in parameters}
        mentions = dict.fromkeys(by_name, 0)
        for name in _NAME.findall(kernel.body):
            if name in mentions:
                mentions[name] += 1
        for one in parameters:
            read[one.offset : one.offset + one.size] = False
        for load in _LOAD.finditer(kernel.body):
            if load["name"] in by_name:
                mentions[load["name"]] -= 1
                _mark(read, by_name[load["name"]], load)
    except UnknownTypeError:
        return np.zeros(0, np.bool_)
    for one in parameters:
        if mentions[one.name]:  # its address is taken, or it is read in another way
            read[one.offset : one.offset + one.size] = True
    return read


def _mark(read: NDArray[np.bool_], parameter: Parameter, load: re.Match[str]) -> None:
    count = next((_VECTORS[one] for one in load["modifiers"].split(".") if one in _VECTORS), 1)
    begin = parameter.offset + int(load["offset"] or 0)
    read[begin : begin + count * size_of(load["type"])] = True


def _either(one: NDArray[np.bool_], other: NDArray[np.bool_]) -> NDArray[np.bool_]:
    """Return what either reads. What only one of them has counts as read."""
    shorter, longer = sorted((one, other), key=len)
    both = np.ones(len(longer), np.bool_)
    both[: len(shorter)] = shorter | longer[: len(shorter)]
    return both


def _stretches(unread: NDArray[np.bool_]) -> list[tuple[int, int]]:
    """Return where each row of true values begins and ends."""
    changes = np.flatnonzero(np.diff(np.concatenate(([False], unread, [False])).astype(np.int8)))
    return [(int(begin), int(end)) for begin, end in changes.reshape(-1, 2)]
