"""Random input for code that enters programs, with libFuzzer; `make sanitize` installs the compiler."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Iterable, Sequence
from pathlib import Path

import pytest

RUNS = int(os.environ.get("FFM_FUZZING_RUNS", "200000"))
LANGUAGES = {".c": ("clang", "-std=c11"), ".cpp": ("clang++", "-std=c++17")}


def fuzz(
    folder: Path,
    target: Path,
    sources: Sequence[Path],
    options: Sequence[str],
    *,
    longest: int,
    examples: Iterable[bytes] = (),
    portion: int = 1,
) -> None:
    """Build a target with the sources, libFuzzer and sanitizers, and assert that it holds on random input.

    Inputs have at most `longest` bytes, and begin from `examples`. One `portion`-th of the usual runs is made.
    """
    compiler, standard = LANGUAGES[target.suffix]
    if shutil.which(compiler) is None:
        pytest.skip("libFuzzer needs clang: make sanitize installs it")
    program, corpus = folder / target.stem, folder / "corpus"
    built = subprocess.run(
        [
            compiler, standard, "-D_GNU_SOURCE", "-O1", "-g", "-Wall", "-Wextra", "-Werror",
            "-fsanitize=fuzzer,address,undefined", "-fno-sanitize-recover=all", "-o", str(program), str(target),
            *map(str, sources), *options,
        ],
        capture_output=True,
        text=True,
        check=False,
    )  # fmt: skip
    if "libclang_rt.fuzzer" in built.stderr:
        pytest.skip("clang's runtime with libFuzzer is not installed: make sanitize installs it")
    assert built.returncode == 0, built.stderr
    corpus.mkdir()
    for number, example in enumerate(examples):
        (corpus / f"example-{number}").write_bytes(example)
    run = subprocess.run(
        [
            str(program), f"-runs={RUNS // portion}", "-seed=1", f"-max_len={longest}", "-verbosity=0",
            f"-artifact_prefix={folder}/", str(corpus),
        ],
        capture_output=True,
        text=True,
        errors="replace",
        check=False,
    )  # fmt: skip
    assert run.returncode == 0, run.stderr
