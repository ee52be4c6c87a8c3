"""Ctrl-C at moments that a test cannot hit by chance: always one line and the exit status of an interruption."""

from __future__ import annotations

import os
import signal
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

LATE_MESSAGE = """
import ctypes, runpy, subprocess, sys
import frida
from ffm.cli import main
ctypes.CDLL(None).__cxa_atexit(ctypes.CDLL(None).usleep, ctypes.c_void_p(1_000_000), None)
target = subprocess.Popen(["sleep", "60"], stdout=subprocess.DEVNULL)
def command(**_):
    global script
    script = frida.get_local_device().attach(target.pid).create_script(
        "rpc.exports = { late() { setTimeout(send, 400, 1); } };", runtime="qjs")
    script.on("message", lambda message, data: None)
    script.load()
    script.exports_sync.late()
    print(target.pid, end="")
    return 7
main.commands.main = command
runpy.run_module("ffm", run_name="__main__")
"""
"""Frida calls Python 0.4 s later; what is unloaded after the interpreter takes a second, as on a busy machine."""


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


def test_frida_finds_no_interpreter_at_the_end() -> None:
    done = subprocess.run([sys.executable, "-c", LATE_MESSAGE], stdout=subprocess.PIPE, text=True, check=False)
    os.kill(int(done.stdout), signal.SIGKILL)
    assert done.returncode == 7
