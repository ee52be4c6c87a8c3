"""Waits on the driver's own threads: the program does not request them, and cannot fix them."""

from __future__ import annotations

import re
from pathlib import PurePath
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ffm.instrument.recording.layout import constant
from ffm.instrument.recording.reader import Recording
from ffm.instrument.recording.stacks import RecordedStack

_DRIVER = re.compile(r"libcuda\.so(\.|$)")
_THREAD_START = re.compile(r"(libc|libpthread)[.-].*so")
"""The C library's start of a thread, outermost on its stack."""


def of_driver_threads(recording: Recording) -> NDArray[np.bool_]:
    """Return which operations are waits on the driver's own threads. Shape (operations,).

    The stack of such a wait contains only the driver's functions and the C library's start of the thread. A stack whose
    outer end is missing may be the program's, and counts as that.
    """
    names = [PurePath(module.path).name for module in recording.modules]
    rows: NDArray[Any] = recording.operations
    private = rows["function"] == constant("FFM_FUNCTION_PRIVATE")
    stacks, which = np.unique(rows["stack"][private], return_inverse=True)
    own = [stack < len(recording.stacks) and _is_own(recording.stacks[stack], names) for stack in stacks.tolist()]
    found: NDArray[np.bool_] = np.zeros(len(rows), bool)
    found[private] = np.array(own, np.bool_)[which]
    return found


def _is_own(stack: RecordedStack, names: list[str]) -> bool:
    if stack.truncated or stack.python:
        return False
    modules = ["" if module is None else names[module] for module, _ in stack.frames]
    inside = [name for name in modules if not _THREAD_START.match(name)]
    begun = bool(modules) and _THREAD_START.match(modules[-1]) is not None
    return begun and bool(inside) and all(_DRIVER.match(name) for name in inside)
