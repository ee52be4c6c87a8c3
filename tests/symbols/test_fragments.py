"""Parts of a function that the compiler moved elsewhere."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

import pytest

from ffm.symbols.fragments import split_parts

SOURCE = """
#include <stdio.h>
#include <stdlib.h>
#define EXPORT __attribute__((visibility("default"), noinline))
__attribute__((cold, noinline)) static void complain(const char *what, int value) { printf("%s %d\\n", what, value); }
EXPORT int other(int value) { char room[64]; snprintf(room, sizeof room, "%d", value); return atoi(room); }
EXPORT int split(int value)
{
    char room[128];
    snprintf(room, sizeof room, "%d", value);
    if (__builtin_expect(value == 3, 0)) {
        complain(room, value);
        complain("three", value + other(value));
    }
    return other(atoi(room));
}
EXPORT int whole(int value) { return value + 1; }
"""


@pytest.fixture(scope="module")
def library(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("split")
    (folder / "split.c").write_text(SOURCE)
    command = ["gcc", "-O2", "-freorder-blocks-and-partition", "-fPIC", "-shared", "-fvisibility=hidden"]
    subprocess.run([*command, "-o", "library.so", "split.c"], cwd=folder, check=True)
    return folder / "library.so"


def symbols(library: Path) -> dict[str, range]:
    listing = subprocess.run(["nm", "-S", str(library)], capture_output=True, text=True, check=True).stdout
    rows = re.findall(r"^([0-9a-f]+) ([0-9a-f]+) [tT] (\S+)$", listing, re.MULTILINE)
    return {name: range(int(start, 16), int(start, 16) + int(size, 16)) for start, size, name in rows}


def test_the_moved_part_is_found_without_its_name(library: Path, tmp_path: Path) -> None:
    known = symbols(library)
    assert "split.cold" in known, "the compiler did not split the function"
    stripped = tmp_path / "stripped.so"
    subprocess.run(["strip", "-o", str(stripped), str(library)], check=True)
    assert split_parts(stripped, "split") == [known["split"], known["split.cold"]]


def test_a_function_that_is_jumped_to_is_no_part(library: Path) -> None:
    """`split` ends with a jump to `other`, as optimized calls do."""
    known = symbols(library)
    parts = split_parts(library, "split")
    assert not any(known["other"].start in part or known["complain"].start in part for part in parts)


def test_a_function_in_one_piece(library: Path) -> None:
    assert split_parts(library, "whole") == [symbols(library)["whole"]]


def test_a_function_that_is_not_there(library: Path) -> None:
    assert split_parts(library, "missing") == []
