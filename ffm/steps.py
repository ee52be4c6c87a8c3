"""What a long computation is doing, for whatever displays its progress."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

Tell = Callable[[str], None]
"""Called with each step when it begins, in a few words such as "joining the runs"."""


def silently(step: str) -> None:
    """Show no steps."""


class CompilingSteps:
    """Steps, some of which compile code first: meanwhile, that is shown instead. An instance is a `Tell`."""

    def __init__(self, tell: Tell) -> None:
        self._tell = tell
        self._step = ""
        self._inside = 0
        self._parts = 0
        self._began = 0.0
        self._lock = threading.Lock()
        self.compiling_s = 0.0
        """How long code was compiled."""
        self.kept = True
        """Whether compiled code is kept, so that this happens only once on a machine."""

    def __call__(self, step: str) -> None:
        """Show a step that begins."""
        self._step = step
        self._tell(step)

    def begin_compiling(self) -> None:
        """Show that a part of the code is being compiled, unless it is compiled only for another part."""
        with self._lock:
            self._inside += 1
            if self._inside > 1:
                return
            self._parts += 1
            self._began = time.monotonic()
        once = ", only this first time" if self.kept else ""
        self._tell(f"compiling its code{once}: part {self._parts}")

    def end_compiling(self) -> None:
        """Show the step again when nothing is being compiled any more."""
        with self._lock:
            self._inside -= 1
            if self._inside:
                return
            self.compiling_s += time.monotonic() - self._began
        self._tell(self._step)


_followed: list[CompilingSteps] = []
"""Those that show what is compiled; empty if nobody displays anything."""


@contextmanager
def following_compiler(tell: Tell) -> Iterator[CompilingSteps]:
    """Yield what to call with steps in place of `tell`, which is then also called while code is compiled."""
    steps = CompilingSteps(tell)
    _followed.append(steps)
    try:
        yield steps
    finally:
        _followed.remove(steps)


def compiling_begins() -> None:
    """Let all who follow show that a part of the code is being compiled."""
    for steps in _followed:
        steps.begin_compiling()


def compiling_ends() -> None:
    """Let all who follow know that this part is compiled."""
    for steps in _followed:
        steps.end_compiling()


def is_kept(*, kept: bool) -> None:
    """Let all who follow know whether compiled code is kept."""
    for steps in _followed:
        steps.kept = kept
