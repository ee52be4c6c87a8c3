"""Screens as printed."""

from __future__ import annotations

import io

from rich.console import Console, RenderableType


def text_of(screen: RenderableType, width: int = 80) -> str:
    console = Console(file=io.StringIO(), width=width, highlight=False, markup=False)
    with console.capture() as capture:
        console.print(screen)
    return "".join(line.rstrip() + "\n" for line in capture.get().splitlines())
