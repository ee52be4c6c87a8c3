"""Reading the stack of a stopped thread leaves the process as it was."""

from __future__ import annotations

import subprocess
import sys
import time
from pathlib import Path

from ffm.instrument.probing.blocked_stack import read_stack

WAITS_FOR_INPUT = "import sys; print(flush=True); print(sys.stdin.readline(), end='')"


def code_ranges(process: int) -> list[range]:
    rows = [line.split() for line in Path(f"/proc/{process}/maps").read_text().splitlines()]
    bounds = [row[0].split("-") for row in rows if "x" in row[1]]
    return [range(int(first, 16), int(last, 16)) for first, last in bounds]


def test_a_blocked_thread_is_read_and_goes_on() -> None:
    with subprocess.Popen(
        [sys.executable, "-c", WAITS_FOR_INPUT], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as child:
        assert child.stdout is not None
        child.stdout.readline()
        for _ in range(20):
            stack = read_stack(child.pid, child.pid)
            assert stack is not None
            code = code_ranges(child.pid)
            assert any(stack.program_counter in part for part in code)
            # At least the caller of `read`, and of that, and so on.
            assert sum(any(word in part for part in code) for word in stack.words[:512].tolist()) > 3
        answer, _ = child.communicate("still here\n")
    assert answer == "still here\n"
    assert child.returncode == 0


def test_a_thread_that_has_ended_has_no_stack() -> None:
    child = subprocess.Popen(["true"])
    child.wait()
    assert read_stack(child.pid, child.pid) is None


def test_a_running_thread_is_read(tmp_path: Path) -> None:
    child = subprocess.Popen([sys.executable, "-c", "while True: pass"])
    try:
        while not any("python" in line for line in Path(f"/proc/{child.pid}/maps").read_text().splitlines()):
            time.sleep(0.001)
        stacks = [read_stack(child.pid, child.pid) for _ in range(5)]
    finally:
        child.kill()
        child.wait()
    assert all(stack is not None and len(stack.words) for stack in stacks)
