"""Draw what a command prints on a terminal: `python docs/pictures.py docs/images/report.svg 30 ffm report`.

The second argument is how many lines to show; the rest is the command, which is run here and now. The picture names
no font of the web, so that it looks the same without a network.
"""

from __future__ import annotations

import os
import re
import shlex
import subprocess
import sys
from io import StringIO
from pathlib import Path

from rich.console import Console
from rich.terminal_theme import SVG_EXPORT_THEME
from rich.text import Text

COLUMNS = 80


def draw(picture: Path, lines: int, command: list[str]) -> None:
    """Run `command`, and write the first `lines` lines that it prints to `picture` as SVG."""
    terminal = {**os.environ, "FORCE_COLOR": "1", "COLUMNS": str(COLUMNS)}
    printed = subprocess.run(command, env=terminal, capture_output=True, text=True, check=True).stdout
    console = Console(record=True, width=COLUMNS + 2, file=StringIO())
    console.print(Text(f"$ {shlex.join(command)}", style="bold"))
    console.print(Text.from_ansi("\n".join(printed.splitlines()[:lines])))
    svg = console.export_svg(title=shlex.join(command), theme=SVG_EXPORT_THEME, unique_id=picture.stem)
    svg = re.sub(r"@font-face \{.*?\}\n", "", svg, flags=re.DOTALL).replace("Fira Code", "DejaVu Sans Mono, Menlo")
    picture.write_text("\n".join(line.rstrip() for line in svg.splitlines()) + "\n", encoding="utf-8")


if __name__ == "__main__":
    draw(Path(sys.argv[1]), int(sys.argv[2]), sys.argv[3:])
