"""Printing screens to standard output."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

from rich.console import Console, RenderableType

from ffm.report.terminal.layout import NARROWEST

View = TypeVar("View")


def print_screen(render: Callable[[View, int], RenderableType], view: View) -> None:
    """Print a view at the terminal's width; in a pipe, without colours and 80 columns wide or as COLUMNS says.

    Screens need `NARROWEST` columns: on a narrower terminal, their lines wrap.
    """
    console = Console(highlight=False, markup=False, emoji=False)
    with console.capture() as capture:
        console.print(render(view, max(console.width, NARROWEST)), crop=False)
    lines = (line.rstrip() for line in capture.get().splitlines())
    console.file.write("\n".join(lines) + "\n")
    console.file.flush()
