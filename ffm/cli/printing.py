"""How commands print views and write files."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

import click

if TYPE_CHECKING:
    from rich.console import RenderableType

View = TypeVar("View")


def print_view(view: View, render: Callable[[View, int], RenderableType], *, as_json: bool) -> None:
    """Print a view, as JSON or as a screen."""
    if as_json:
        import orjson

        click.echo(orjson.dumps(view, option=orjson.OPT_INDENT_2))
        return
    from ffm.report.terminal.printing import print_screen

    print_screen(render, view)


def write_output(chunks: Iterable[bytes], output: Path | None) -> None:
    """Write to the file that the user named, completely or not at all, or else to standard output."""
    if output is None:
        sys.stdout.buffer.writelines(chunks)
        sys.stdout.flush()
        return
    from ffm.whole_file import named_output

    with named_output(output) as file:
        file.writelines(chunks)
