"""The gate on a C++ program: a wait of a library, a copy that only by its name is asynchronous, an allowed copy."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import orjson
import pytest

from tests.conftest import Ffm

PROGRAM = Path(__file__).parent / "programs" / "demonstrated.cu"
TURNS = 6


def line_of(mark: str) -> int:
    return next(number for number, line in enumerate(PROGRAM.read_text().splitlines(), 1) if f"/* {mark} */" in line)


@pytest.fixture(scope="module")
def checked(ffm: Ffm, build_program: Callable[..., Path], tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    folder = tmp_path_factory.mktemp("demonstrated")
    (folder / "ffm.toml").write_text('[[allow]]\nfunction = "report"\nreason = "it prints the result"\n')
    done = ffm("check", "--quick", "--format", "json", build_program(PROGRAM, "-lvblas"), folder=folder)
    assert done.code == 1, done.err
    return dict(orjson.loads(done.out))


def calls_at(checked: dict[str, Any], mark: str) -> set[tuple[str, int]]:
    return {(one["call"], one["count"]) for one in checked["violations"] if one["line"] == line_of(mark)}


def test_a_librarys_own_wait_is_named_with_the_line_that_calls_the_library(checked: dict[str, Any]) -> None:
    assert calls_at(checked, "the library waits") == {("vblasSasum", TURNS)}


def test_a_copy_to_pageable_memory_is_caught_although_it_is_called_asynchronous(checked: dict[str, Any]) -> None:
    assert calls_at(checked, "not asynchronous") == {("cudaMemcpyAsync", TURNS)}


def test_what_is_allowed_passes(checked: dict[str, Any]) -> None:
    assert calls_at(checked, "wanted") == set()
    assert checked["allowed"] == 1
    assert checked["warnings"] == []
