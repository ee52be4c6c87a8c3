"""`ffm check` on a program: measured once, judged by several configurations. About 8 s of processor time."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import orjson
import pytest

from tests.conftest import Ffm, Finished
from tests.pipeline.gated import BY_MAIN, BY_THREADS, PROGRAM


@dataclass(frozen=True)
class Checked:
    """A program that was measured by the first check, in a folder."""

    folder: Path
    first: Finished


@pytest.fixture(scope="module")
def checked(ffm: Ffm, build_program: Callable[[Path], Path], tmp_path_factory: pytest.TempPathFactory) -> Checked:
    folder = tmp_path_factory.mktemp("gate")
    first = ffm("check", "--format", "json", "--timeout", 60, build_program(PROGRAM), folder=folder)
    return Checked(folder, first)


def test_a_violation_names_line_call_count_and_thread(checked: Checked) -> None:
    assert checked.first.code == 1, checked.first.err
    found = orjson.loads(checked.first.out)["violations"]
    where = [(Path(one["file"]).name, one["line"], one["call"], one["count"]) for one in found]
    assert sorted(where) == [
        ("gated.cu", BY_THREADS, "cudaDeviceSynchronize", 5),
        ("gated.cu", BY_THREADS, "cudaDeviceSynchronize", 7),
        ("gated.cu", BY_MAIN, "cudaDeviceSynchronize", 2),
    ]
    assert len({one["thread"] for one in found}) == 3
    assert all("unnecessary synchronization" in one["reason"] for one in found)


@pytest.mark.parametrize(
    ("rules", "left"),
    [
        (f'file = "gated.cu"\nline = {BY_THREADS}', [2]),
        (f'file = "gated.cu"\nline = {BY_THREADS}\ncount = 7', [2]),
        (f'file = "gated.cu"\nline = {BY_THREADS}\ncount = 6', [2, 7]),
        ('stack = ["cudaDevice*", "main"]', [5, 7]),
        ('call = "cudaDeviceSynchronize"', []),
    ],
)
def test_what_is_allowed_is_no_violation(ffm: Ffm, checked: Checked, rules: str, left: list[int]) -> None:
    config = checked.folder / "rules.toml"
    config.write_text(f'[[allow]]\n{rules}\nreason = "told"\n')
    done = ffm("check", "--config", config, "--format", "json", folder=checked.folder)
    assert (done.code, done.err) == (1 if left else 0, "")
    assert sorted(one["count"] for one in orjson.loads(done.out)["violations"]) == left


def test_a_program_that_fails_by_itself_is_told_apart(
    ffm: Ffm, build_program: Callable[[Path], Path], tmp_path: Path
) -> None:
    done = ffm("check", build_program(PROGRAM), 1, folder=tmp_path)
    assert (done.code, done.out) == (2, "")
    assert "exited with code 1" in done.err
    assert len([line for line in done.err.splitlines() if line.startswith("ffm: ")]) == 1
