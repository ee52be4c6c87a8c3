"""Other machines than this one: virtual GPUs drawn at random, and a core that is kept busy."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from random import Random

from common.gpu_defaults import SIZES, TIMES

CONFIGURATION = "VGPU_CONFIGURATION"

DRAWN = ("kernel.", "call.", "copy.")
_NUMBER = re.compile(r"\d+(?:\.\d+)?")


def perturbed(configuration: str, random: Random) -> str:
    """Return a configuration with each time and each bandwidth between half and twice of what it was."""
    settings = {key: str(value) for key, value in TIMES.items()}
    for line in configuration.splitlines():
        key, equals, value = line.partition("#")[0].partition("=")
        if equals:
            settings[key.strip()] = value.strip()

    def drawn(key: str, value: str) -> str:
        if not key.startswith(DRAWN) or key in SIZES:
            return value
        factor = 2 ** random.uniform(-1, 1)
        return _NUMBER.sub(lambda number: f"{float(number[0]) * factor:.6f}", value)

    return "".join(f"{key} = {drawn(key, value)}\n" for key, value in sorted(settings.items()))


@contextmanager
def on_gpu(configuration: str, folder: Path) -> Iterator[None]:
    """Let programs run, in the block, on the virtual GPU with a configuration, which is kept in a folder."""
    file = folder / "vgpu"
    file.write_text(configuration)
    before = os.environ.get(CONFIGURATION)
    os.environ[CONFIGURATION] = str(file)
    try:
        yield
    finally:
        if before is None:
            del os.environ[CONFIGURATION]
        else:
            os.environ[CONFIGURATION] = before


@contextmanager
def perturbed_gpu(configuration: Path, folder: Path, random: Random) -> Iterator[None]:
    """Let programs run on a virtual GPU drawn from a configuration, in the block."""
    with on_gpu(perturbed(configuration.read_text(), random), folder):
        yield


@contextmanager
def busy_core(*, busy: bool) -> Iterator[None]:
    """Keep a core busy in the block, or not."""
    if not busy:
        yield
        return
    process = subprocess.Popen([sys.executable, "-c", "while True: pass"])
    try:
        yield
    finally:
        process.kill()
        process.wait()
