"""Code that reads what a program gives it, on random input."""

from __future__ import annotations

from pathlib import Path

from tests.native.fuzzing import fuzz
from tests.native.layers import NATIVE

HERE = Path(__file__).parent
DETECTION = NATIVE / "watch" / "detection"


def test_what_is_emulated_is_within_what_the_decoder_tells(tmp_path: Path) -> None:
    sources = [DETECTION / "instruction.c", DETECTION / "emulation.c"]
    fuzz(tmp_path, HERE / "fuzz_instruction.c", sources, [f"-I{DETECTION}"], longest=15)
