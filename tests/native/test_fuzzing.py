"""Code that reads what a program gives it, on random input; `make sanitize` installs the compiler."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

import pytest

from tests.native.layers import NATIVE

HERE = Path(__file__).parent
DETECTION = NATIVE / "watch" / "detection"
RUNS = int(os.environ.get("FFM_FUZZING_RUNS", "200000"))


@pytest.mark.skipif(shutil.which("clang") is None, reason="libFuzzer needs clang: make sanitize installs it")
def test_what_is_emulated_is_within_what_the_decoder_tells(tmp_path: Path) -> None:
    program = tmp_path / "fuzz_instruction"
    built = subprocess.run(
        [
            "clang", "-std=c11", "-D_GNU_SOURCE", "-O1", "-g", "-Wall", "-Wextra", "-Werror",
            "-fsanitize=fuzzer,address,undefined", "-fno-sanitize-recover=all", f"-I{DETECTION}", "-o", str(program),
            str(HERE / "fuzz_instruction.c"), str(DETECTION / "instruction.c"), str(DETECTION / "emulation.c"),
        ],
        capture_output=True,
        text=True,
        check=False,
    )  # fmt: skip
    if "libclang_rt.fuzzer" in built.stderr:
        pytest.skip("clang's runtime with libFuzzer is not installed (package libclang-rt-dev)")
    assert built.returncode == 0, built.stderr
    run = subprocess.run(
        [str(program), f"-runs={RUNS}", "-seed=1", "-max_len=15", "-verbosity=0", f"-artifact_prefix={tmp_path}/"],
        capture_output=True,
        text=True,
        check=False,
    )
    assert run.returncode == 0, run.stderr
