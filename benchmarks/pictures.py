"""The pictures beside the results."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from matplotlib.figure import Figure


def new_figure(width: float, height: float) -> Figure | None:
    """Return a figure to draw on, so many inches wide and high; None, after saying so, where matplotlib is missing."""
    try:
        from matplotlib.figure import Figure
    except ImportError:
        print("no picture: matplotlib is not installed (`.venv/bin/python -m pip install --group bench`)")
        return None
    return Figure(figsize=(width, height), layout="constrained")
