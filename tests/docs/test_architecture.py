"""The architecture page names every room, and none that does not exist."""

from __future__ import annotations

import ast
import re
import tomllib
from collections import Counter
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


UNUSED = {
    "LogHandler": "Snakemake looks for this name in its logger plugins",
    "analysis_options": "the workflow's Snakefile calls it",
    "hold": "the workflow's Snakefile calls it",
    "iteration": "measured programs call it",
    "library_folder": "what is linked with the virtual GPU asks where it is",
    "release_dead": "the workflow's Snakefile calls it",
    "require_scheduler": "the workflow's Snakefile calls it",
}
"""Functions and classes that ffm's own modules do not name, and why each exists."""


def test_only_what_ffm_itself_uses_is_defined() -> None:
    """What only tests call is dead code. A method of a derived class may be called by its base; a command and a hook of
    pytest, by name. That a function calls itself does not count.
    """
    defined: set[str] = set()
    used: Counter[str] = Counter()
    by_itself: Counter[str] = Counter()
    for path in (ROOT / "ffm").rglob("*.py"):
        tree = ast.parse(path.read_text())
        used += _used_in(tree)
        for node in ast.walk(tree):
            match node:
                case ast.Module(body=body) | ast.ClassDef(body=body, bases=[]):
                    for part in body:
                        if isinstance(part, ast.FunctionDef | ast.ClassDef) and not _is_command(part):
                            defined.add(part.name)
                            by_itself[part.name] += _used_in(part)[part.name]
    unused = {name for name in defined if used[name] <= by_itself[name]}
    assert {name for name in unused if not name.startswith(("__", "pytest_"))} == set(UNUSED)


def _used_in(tree: ast.AST) -> Counter[str]:
    """Return how often each name is used below a node."""
    used: Counter[str] = Counter()
    for node in ast.walk(tree):
        match node:
            case ast.Name(id=name) | ast.Attribute(attr=name):
                used[name] += 1
            case ast.ImportFrom(names=names):
                used.update(alias.name for alias in names if alias.asname is not None)
    return used


def _is_command(definition: ast.FunctionDef | ast.ClassDef) -> bool:
    return any("command(" in ast.unparse(decorator) for decorator in definition.decorator_list)
