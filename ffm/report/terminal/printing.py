"""Printing screens to standard output."""

from __future__ import annotations

from collections.abc import Callable, Iterable
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
        console.print(render(view, _width(console)), crop=False)
    lines = (line.rstrip() for line in capture.get().splitlines())
    console.file.write("\n".join(lines) + "\n")
    console.file.flush()


def print_lines(lines: Callable[[View, int], Iterable[str]], view: View) -> None:
    """Print the plain lines of a view at the same width as screens."""
    console = Console()
    console.file.write("".join(f"{line}\n" for line in lines(view, _width(console))))
    console.file.flush()


def _width(console: Console) -> int:
    return max(console.width, NARROWEST)
