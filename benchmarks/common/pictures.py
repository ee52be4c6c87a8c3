"""The pictures next to the results."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from matplotlib.figure import Figure


def new_figure(width: float, height: float) -> Figure | None:
    """Return a figure of a width and height in inches; None, with a message, if matplotlib is missing."""
    try:
        from matplotlib.figure import Figure
    except ImportError:
        print("no picture: matplotlib is not installed (`.venv/bin/python -m pip install --group bench`)")
        return None
    return Figure(figsize=(width, height), layout="constrained")
