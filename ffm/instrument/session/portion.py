"""Which portion of a run is measured: a window, or iterations that the program marks (`native/calls/portion.h`)."""

from __future__ import annotations

import math
import re
from dataclasses import dataclass
from typing import Any

from ffm.errors import FfmError

WHOLE = 1 << 52
"""More calls, and more nanoseconds, than a run has; JavaScript passes such a number on exactly."""

LONGEST_S = 1e6
"""Seconds from the start of a window, which are eleven days."""

MOST_APART = 1_000_000
LEAST_APART = 4
"""Of fewer iterations, the one before and the one after each sampled one would be all of them."""

LONGEST_NAME = 255
"""Bytes."""

_WINDOW = re.compile(r"\s*(\d+(?:\.\d+)?)\s*\.\.\s*(\d+(?:\.\d+)?)?\s*(s|calls)?\s*")
_SAMPLE = re.compile(r"\s*1\s*/\s*(\d+)\s*")

LEAST_S = 0.01
"""The shortest time that a run is measured for, which is looked at in steps of this order."""

_UNITS = {"ms": 1e-3, "s": 1.0, "min": 60.0, "h": 3600.0}
_DURATION = re.compile(r"\s*(\d+(?:\.\d+)?)\s*(ms|s|min|h)?\s*")

_TIME, _CALLS, _ITERATIONS = 1, 2, 3
"""`ffm_portion_kind`."""


class PortionError(FfmError):
    """What was asked for is not a portion of a run."""


@dataclass(frozen=True, slots=True)
class Window:
    """Seconds since the first driver call of a process; `end_s` may be infinite."""

    start_s: float
    end_s: float

    def configuration(self) -> dict[str, Any]:
        """Return what the agent passes on."""
        until = WHOLE if math.isinf(self.end_s) else round(self.end_s * 1e9)
        return {"kind": _TIME, "from": round(self.start_s * 1e9), "until": until, "every": 1, "name": ""}


@dataclass(frozen=True, slots=True)
class Calls:
    """A window of the same calls in each run: how many were made before it, and before its end.

    Those count that transfer, set, launch, wait, allocate or free.
    """

    first: int
    end: int

    def configuration(self) -> dict[str, Any]:
        """Return what the agent passes on."""
        return {"kind": _CALLS, "from": self.first, "until": self.end, "every": 1, "name": ""}


@dataclass(frozen=True, slots=True)
class Iterations:
    """Iterations that the program marks with this name (any, if it is empty): each one, or every n-th."""

    name: str
    every: int = 1

    def configuration(self) -> dict[str, Any]:
        """Return what the agent passes on."""
        return {"kind": _ITERATIONS, "from": 0, "until": 0, "every": self.every, "name": self.name}


Asked = Window | Calls | Iterations
"""What a user can ask for."""


def read_window(text: str) -> Window | Calls:
    """Read `START..END` in seconds, or `START..END calls`; without END, it lasts to the end of the run.

    Raises:
        PortionError: It is no window; says what one looks like.
    """
    match = _WINDOW.fullmatch(text)
    if match is None:
        raise PortionError(
            f"the window {text} is not START..END, two numbers of seconds since the program's first driver call, such "
            "as 60..90."
        )
    start, end = float(match[1]), math.inf if match[2] is None else float(match[2])
    counted = match[3] == "calls"
    if end <= start:
        kind = "empty" if end == start else "reversed"
        raise PortionError(f"the window {text} is {kind}: its end, the second number, must be after its start.")
    limit = WHOLE if counted else LONGEST_S
    if start > limit or (end > limit and not math.isinf(end)):
        raise PortionError(f"the window {text} reaches beyond what a run can last: give an earlier one.")
    if counted:
        return Calls(int(start), WHOLE if math.isinf(end) else int(end))
    return Window(start, end)


def read_duration(text: str) -> float:
    """Read a time such as `60s`, `1.5 min` or `500ms`; without a unit, it is in seconds.

    Raises:
        PortionError: It is no time above 0 that a run can last; says what one looks like.
    """
    match = _DURATION.fullmatch(text)
    if match is None:
        raise PortionError(f"{text} is not a time: write a number above 0 and its unit, such as 60s, 5min or 2h.")
    seconds = float(match[1]) * _UNITS[match[2] or "s"]
    if not LEAST_S <= seconds <= LONGEST_S:
        raise PortionError(f"a run cannot be measured for {text}: choose from {LEAST_S:g} s to {LONGEST_S:,.0f} s.")
    return seconds


def read_iterations(ranges: str | None, sample: str | None) -> Iterations:
    """Read the name of marked iterations, and `1/N` for how many of them are measured.

    Raises:
        PortionError: They are not readable; says what they look like.
    """
    name = " ".join((ranges or "").split())
    if ranges is not None and not name:
        raise PortionError("the name of the ranges is empty: give the one that the program passes to ffm.iteration.")
    if len(name.encode(errors="replace")) > LONGEST_NAME:
        raise PortionError(f"the name of the ranges has more than {LONGEST_NAME} bytes: give them a shorter one.")
    if sample is None:
        return Iterations(name)
    match = _SAMPLE.fullmatch(sample)
    every = int(match[1]) if match is not None and len(match[1]) < 12 else 0
    if match is None or not LEAST_APART <= every <= MOST_APART:
        raise PortionError(
            f"{sample} iterations are not 1/N with an N from {LEAST_APART} to {MOST_APART}: each N-th iteration is "
            "measured, and for its edges the one before and the one after it."
        )
    return Iterations(name, every)


def read_portion(window: str | None, ranges: str | None, sample: str | None) -> Asked | None:
    """Read what a user asked for; None for the whole run.

    Raises:
        PortionError: It is not a portion of a run.
    """
    if window is not None and (ranges is not None or sample is not None):
        raise PortionError("choose either a window of seconds, or ranges and samples of iterations, not both.")
    if window is not None:
        return read_window(window)
    return None if ranges is None and sample is None else read_iterations(ranges, sample)
