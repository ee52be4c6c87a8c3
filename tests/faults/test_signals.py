"""Ctrl-C at moments that a test cannot hit by chance: always one line and the exit status of an interruption."""

from __future__ import annotations

import subprocess
import sys

import pytest

WHILE_IMPORTING = """
import sys, runpy
class Interrupting:
    def find_spec(self, name, path=None, target=None):
        if name == "ffm.cli.main":
            raise KeyboardInterrupt
sys.meta_path.insert(0, Interrupting())
runpy.run_module("ffm", run_name="__main__")
"""

LOST = """
import ctypes, os, signal
from ffm.cli import main
def command(**_):
    ctypes.CFUNCTYPE(None)(lambda: os.kill(os.getpid(), signal.{name}))()
main.commands.main = command
main.main()
"""

AT_THE_END = """
import atexit, os, signal
from ffm.cli import main
atexit.register(lambda: os.kill(os.getpid(), signal.SIGINT))
main.commands.main = lambda **_: 0
main.main()
"""


def run(script: str) -> tuple[int, list[str]]:
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=False)
    return done.returncode, done.stderr.strip().splitlines()


def test_while_it_is_imported() -> None:
    assert run(WHILE_IMPORTING) == (130, ["ffm: interrupted."])


@pytest.mark.parametrize(
    ("name", "code", "told"),
    [("SIGINT", 130, "ffm: interrupted."), ("SIGTERM", 143, "ffm: ended by SIGTERM.")],
)
def test_a_signal_that_a_library_swallows(name: str, code: int, told: str) -> None:
    assert run(LOST.format(name=name)) == (code, [told])


def test_at_the_very_end_nothing_is_said() -> None:
    assert run(AT_THE_END) == (-2, [])
