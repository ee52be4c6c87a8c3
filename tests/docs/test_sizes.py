"""Functions fit on a screen, and folders hold few files."""

from __future__ import annotations

import ast
import re
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]

MOST_LINES = 60

MOST_FILES = 25

SOURCES = (".py", ".js", ".c", ".h", ".cpp", ".cu", ".map", ".def", ".vgpu", ".txt", ".cmake", ".toml")


def functions_of(source: str, suffix: str) -> Iterator[tuple[str, int]]:
    """Yield each function of a file and its number of lines."""
    if suffix == ".py":
        for node in ast.walk(ast.parse(source)):
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
                assert node.end_lineno is not None
                yield node.name, node.end_lineno - node.lineno + 1
        return
    lines = re.sub(r'R"(\w*)\(.*?\)\1"', '""', source, flags=re.DOTALL).splitlines()  # text that a function returns
    for opening, line in enumerate(lines):
        if line.strip() != "{":  # as clang-format puts that of functions alone
            continue
        begin = opening
        while begin > 0 and not re.search(r"(^$|[;{}]$|\*/$|^\s*//|^#|:$)", lines[begin - 1].rstrip()):
            begin -= 1
        if re.match(
            r"\s*(template <.*> )?(namespace|class|struct|union|enum|extern)\b[^(]*$", " ".join(lines[begin:opening])
        ):
            continue
        closing = next(number for number in range(opening, len(lines)) if lines[number] == line.replace("{", "}"))
        yield lines[begin].strip(), closing - begin + 1


@pytest.mark.parametrize("suffix", [".py", ".c", ".h", ".cpp"])
def test_every_function_fits_on_a_screen(suffix: str) -> None:
    lengths = {
        f"{path.relative_to(ROOT)}: {name}": length
        for path in (ROOT / "ffm").rglob(f"*{suffix}")
        for name, length in functions_of(path.read_text(), suffix)
    }
    assert lengths
    assert {name: length for name, length in lengths.items() if length > MOST_LINES} == {}


def test_no_folder_has_many_files() -> None:
    sources = (path for path in (ROOT / "ffm").rglob("*") if path.suffix in SOURCES and path.is_file())
    files = Counter(path.parent.relative_to(ROOT).as_posix() for path in sources)
    assert {folder: count for folder, count in files.items() if count > MOST_FILES} == {}


def test_lengths_are_counted() -> None:
    """From the signature to the closing brace, whatever lies within."""
    source = "/* Two. */\nstatic int\nadd(int a,\n    int b)\n{\n    if (a) {\n    }\n    return a + b;\n}\n\nint c;\n"
    assert list(functions_of(source, ".c")) == [("static int", 8)]
    assert list(functions_of("@cache\ndef add():\n    def inner(): ...\n    return inner\n", ".py")) == [
        ("add", 3),
        ("inner", 1),
    ]
