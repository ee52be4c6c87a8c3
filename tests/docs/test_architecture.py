"""The architecture page names every room, and none that does not exist."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs/architecture.md").read_text()


def test_every_room_is_on_the_page() -> None:
    sources = (path for path in (ROOT / "ffm").rglob("*") if path.suffix in (".py", ".js", ".c"))
    folders = {path.parent.relative_to(ROOT).as_posix() for path in sources}
    named = set(re.findall(r"^\| `(ffm/[\w/]+)` \|", PAGE, re.MULTILINE))
    assert {folder for folder in folders if folder != "ffm" and not folder.startswith("ffm/vgpu/")} == named


def test_the_order_on_the_page_is_the_one_that_is_checked() -> None:
    contracts = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["importlinter"]["contracts"]
    layers = next(contract["layers"] for contract in contracts if contract["type"] == "layers")
    drawn = re.search(r"```text\n(cli\n.*?)```", PAGE, re.DOTALL)
    assert drawn is not None
    assert [line.split() for line in drawn[1].splitlines()] == [layer.split(" | ") for layer in layers[1:-1]]
