"""Programs built with sanitizers are refused before they start, with what to do instead."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest

from ffm.errors import InstrumentError
from ffm.instrument.session.program import resolve_program


def built(compiler: str, sanitizer: str, folder: Path) -> Path:
    if shutil.which(compiler) is None:
        pytest.skip(f"{compiler} is not installed")
    program = folder / "program"
    command = [compiler, f"-fsanitize={sanitizer}", "-x", "c", "-", "-o", program]
    done = subprocess.run(command, input="int main(void) { return 0; }", capture_output=True, text=True)
    if done.returncode != 0:
        pytest.skip(f"{compiler} has no -fsanitize={sanitizer}: {done.stderr.strip()}")
    return program


@pytest.mark.parametrize(
    ("compiler", "sanitizer", "named"),
    [
        ("gcc", "address", "AddressSanitizer"),
        ("gcc", "thread", "ThreadSanitizer"),
        ("clang", "address", "AddressSanitizer"),
        ("clang", "thread", "ThreadSanitizer"),
        ("clang", "memory", "MemorySanitizer"),
    ],
)
def test_a_sanitizer_that_must_come_first_is_named(compiler: str, sanitizer: str, named: str, tmp_path: Path) -> None:
    program = built(compiler, sanitizer, tmp_path)
    with pytest.raises(InstrumentError, match=f"is built with {named}.*without -fsanitize={sanitizer}"):
        resolve_program([str(program)])


def test_other_sanitizers_are_no_hindrance(tmp_path: Path) -> None:
    program = built("gcc", "undefined", tmp_path)
    assert resolve_program([str(program)]) == program


@pytest.mark.parametrize("kept", [20, 64, 200, 1000, 5000])
def test_a_damaged_program_is_left_to_the_system(kept: int, tmp_path: Path) -> None:
    program = built("gcc", "undefined", tmp_path)
    program.write_bytes(program.read_bytes()[:kept] + b"\xff" * 4000)
    assert resolve_program([str(program)]) == program
