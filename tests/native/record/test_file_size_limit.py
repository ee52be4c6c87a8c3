"""A recording grows beyond the limit that the program has on the size of its files, which stays the program's."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from ffm.driver.catalogue import load_catalogue
from ffm.driver.generate import include_text
from tests.native.layers import includes_of, sources_of

OWN = 512
"""Bytes that the program allows itself, fewer than a recording begins with (`file_size_limit.c`)."""


@pytest.fixture(scope="module")
def program(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A program that opens a recording."""
    folder = tmp_path_factory.mktemp("limit")
    (folder / "catalogue.inc").write_text(include_text(load_catalogue()))
    built: Path = folder / "limited"
    subprocess.run(
        [
            "gcc", "-std=c11", "-D_GNU_SOURCE", "-O1", "-g", "-Wall", "-Wextra", "-Werror", f"-I{folder}",
            *includes_of("record"), "-o", str(built), str(Path(__file__).with_name("file_size_limit.c")),
            *map(str, sources_of("record")), "-lpthread",
        ],
        check=True,
    )  # fmt: skip
    return built


@pytest.mark.parametrize(("meanwhile", "kept"), [(0, OWN), (123_456, 123_456)])
def test_the_limit_is_what_the_program_last_set(program: Path, tmp_path: Path, meanwhile: int, kept: int) -> None:
    done = subprocess.run([program, tmp_path, str(meanwhile)], capture_output=True, text=True, check=True)
    assert int(done.stdout) == kept
    assert [found.stat().st_size > OWN for found in tmp_path.glob("*.ffm")] == [True]


def test_a_child_that_is_forked_meanwhile_has_the_limit_of_the_program(program: Path, tmp_path: Path) -> None:
    done = subprocess.run([program, tmp_path, "fork"], capture_output=True, text=True, check=True)
    assert int(done.stdout) == OWN
    assert len(list(tmp_path.glob("*.ffm"))) == 2
