"""If programs cannot be traced, ffm says so at once: under a debugger, in a container, by the kernel's settings."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from ffm.instrument.session import permissions
from tests.conftest import Ffm

PROGRAMS = Path(__file__).parent / "programs"
SLEEP = ("/bin/sleep", "600")
SECONDS = 60.0
"""Far less than the program takes, and than ffm allows for attaching."""


def built(name: str, folder: Path) -> Path:
    program = folder / name
    subprocess.run(["gcc", "-Wall", "-Werror", "-o", program, PROGRAMS / f"{name}.c"], check=True)
    return program


def test_a_program_under_a_debugger(ffm: Ffm, tmp_path: Path) -> None:
    tracer, sleeps = built("tracer", tmp_path), (sys.executable, "-c", "import time; time.sleep(600)")
    done = ffm("stage", "baseline", "--results", tmp_path / "results", "--", tracer, *sleeps, seconds=SECONDS)
    assert done.code == 1
    (line,) = done.err.splitlines()
    assert line.startswith("ffm: Frida cannot attach to the process") and "): tracer (process" in line
    assert line.endswith("Run the program without that tracer.")


@pytest.mark.parametrize("arguments", [("stage", "baseline", "--", *SLEEP), ("doctor",)])
def test_a_kernel_that_refuses_ptrace(tmp_path: Path, arguments: tuple[str, ...]) -> None:
    command = [built("confined", tmp_path), sys.executable, "-m", "ffm", *arguments]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=SECONDS, check=False)
    assert done.returncode == 1
    said = " ".join((done.stdout + done.stderr).split())
    assert "this process may not trace others (Operation not permitted): allow ptrace in the container" in said


@pytest.mark.parametrize(
    ("scope", "capable", "good", "says"),
    [
        (0, False, True, "kernel.yama.ptrace_scope is 0"),
        (1, False, True, "ffm may trace the programs that it starts"),
        (2, True, True, "and ffm has CAP_SYS_PTRACE"),
        (2, False, False, "run ffm as root, or set it to 1"),
        (3, True, False, "this cannot be changed now; set kernel.yama.ptrace_scope = 1 in /etc/sysctl.d and restart"),
    ],
)
def test_the_scope_that_yama_sets(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, scope: int, capable: bool, good: bool, says: str
) -> None:
    (tmp_path / "scope").write_text(f"{scope}\n")
    monkeypatch.setattr(permissions, "_YAMA", tmp_path / "scope")
    monkeypatch.setattr(permissions, "_capable", lambda capability: capable)
    check = permissions.check_tracing()
    assert check.good is good
    assert says in check.says
