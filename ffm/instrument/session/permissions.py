"""What this machine allows instruments to do: tracing, an executable temporary folder, the compiled parts."""

from __future__ import annotations

import ctypes
import errno
import os
import re
import subprocess
import tempfile
from dataclasses import dataclass
from pathlib import Path

import frida

from ffm.errors import InstrumentError
from ffm.instrument.library import LIBRARIES, native_library
from ffm.instrument.ptrace import SEIZE, ptrace

_YAMA = Path("/proc/sys/kernel/yama/ptrace_scope")
_SYS_PTRACE = 19
"""Number of the capability CAP_SYS_PTRACE; source: linux/capability.h."""

_NOBODY = 1 << 30
"""No process has this number: the kernel's limit is 2^22."""

OLDEST_FRIDA = (17, 16)


@dataclass(frozen=True, slots=True)
class Check:
    """One thing that an instrument needs."""

    subject: str
    good: bool
    says: str
    """What was found and, if it is not good, what to do."""


def check_machine() -> list[Check]:
    """Return the findings, in the order in which a measurement needs them. Attaches to nothing."""
    return [_compiled_parts(), _frida(), check_tracing(), _temporary_folder()]


def _compiled_parts() -> Check:
    found: list[str] = []
    for name in LIBRARIES:
        try:
            path = native_library(name)
            ctypes.CDLL(str(path))
        except (InstrumentError, OSError) as error:
            return Check("compiled parts", False, str(error))
        found.append(name)
    return Check("compiled parts", True, f"complete: {', '.join(found)}")


def _frida() -> Check:
    numbers = tuple(int(part) for part in re.findall(r"\d+", frida.__version__)[:2])
    if numbers < OLDEST_FRIDA:
        wanted = ".".join(map(str, OLDEST_FRIDA))
        return Check("Frida", False, f"{frida.__version__} is older than {wanted}: pip install 'frida>={wanted},<18'")
    return Check("Frida", True, frida.__version__)


def check_tracing() -> Check:
    """Return whether our own processes may be traced (Linux, Documentation/admin-guide/LSM/Yama.rst).

    Yama's scope: 0 means any process of this user; 1 descendants and processes that name their tracer, as the gate
    does; 2 only with CAP_SYS_PTRACE; 3 none until the machine is restarted.
    """
    scope = int(_YAMA.read_text()) if _YAMA.exists() else 0
    capable = _capable(_SYS_PTRACE)
    where = f"kernel.yama.ptrace_scope is {scope}" if _YAMA.exists() else "no Yama security module"
    if scope >= 3:
        advice = "set kernel.yama.ptrace_scope = 1 in /etc/sysctl.d and restart the machine"
        return Check("ptrace", False, f"{where}: no process may be traced, and this cannot be changed now; {advice}")
    if scope == 2 and not capable:
        advice = "run ffm as root, or set it to 1 (sysctl kernel.yama.ptrace_scope=1, as root)"
        return Check("ptrace", False, f"{where}: only root may trace processes; {advice}")
    refused = _refused()
    if refused:
        advice = "allow ptrace in the container (--cap-add=SYS_PTRACE), or run ffm outside it"
        return Check("ptrace", False, f"this process may not trace others ({refused}): {advice}")
    privileged = ", and ffm has CAP_SYS_PTRACE" if capable else ""
    return Check("ptrace", True, f"ffm may trace the programs that it starts ({where}{privileged})")


def _refused() -> str:
    """Return why the kernel refuses ptrace for any process, as a container's filter does; empty if it does not."""
    error = ptrace(SEIZE, _NOBODY)
    return "" if error == errno.ESRCH else os.strerror(error)


def _capable(capability: int) -> bool:
    match = re.search(r"^CapEff:\s*([0-9a-f]+)", Path("/proc/self/status").read_text(), re.MULTILINE)
    return match is not None and bool(int(match[1], 16) >> capability & 1)


def _temporary_folder() -> Check:
    """Check that files can be executed there, because Frida's helper is one."""
    folder = Path(tempfile.gettempdir())
    advice = "Frida executes its helper there; set TMPDIR to a folder where programs can run"
    if os.statvfs(folder).f_flag & os.ST_NOEXEC:
        return Check("temporary folder", False, f"{folder} is mounted noexec: {advice}")
    with tempfile.TemporaryDirectory(prefix="ffm-") as scratch:
        program = Path(scratch) / "program"
        program.write_text("#!/bin/sh\nexit 0\n")
        program.chmod(0o755)
        try:
            subprocess.run([program], check=True)
        except (OSError, subprocess.SubprocessError) as error:
            return Check("temporary folder", False, f"a program in {folder} cannot run ({error}): {advice}")
    return Check("temporary folder", True, f"programs run in {folder}")
