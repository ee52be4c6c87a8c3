"""Which functions of a driver could be hooked at all: every export, and every pointer that `cuGetProcAddress` returns.

A measurement hooks only the functions of the catalogue; this shows what would happen with the others.
"""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import msgspec

from ffm.driver.library import DriverFileError, read_library
from ffm.errors import ConfinedError
from ffm.instrument.probing.probe_session import importing_environment
from ffm.instrument.session.frida_home import local_device

_AGENT = Path(__file__).with_name("trial_agent.js")

_HOLDER = """
import sys
from ffm.instrument.probing.probe_driver import Driver, loaded_at, traceable_by_anyone
traceable_by_anyone()
driver = Driver(sys.argv[1])
print(*loaded_at(driver.address("initialise")), flush=True)
sys.stdin.read()
"""


class Trial(msgspec.Struct, frozen=True, kw_only=True):
    """The outcome of hooking one address."""

    names: tuple[str, ...]
    """Exported names of the address; empty if only `cuGetProcAddress` returns it."""
    offset: int
    how: str
    """`replace-fast`, `attach`, or `failed`."""
    reason: str
    """The errors of the ways tried before it."""


def try_all(library: Path, more: tuple[int, ...] = ()) -> list[Trial]:
    """Try to hook each exported `cu…` function of the driver at `library`, and the offsets `more`, each address once.

    Raises:
        ConfinedError: Frida cannot attach.
        DriverFileError: The file is not a driver, or cannot be loaded.
    """
    names: dict[int, list[str]] = {offset: [] for offset in more}
    for name, offset in read_library(library).exports.items():
        if name.startswith("cu"):
            names.setdefault(offset, []).append(name)
    offsets = sorted(names)
    with subprocess.Popen(
        [sys.executable, "-c", _HOLDER, str(library)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env=importing_environment(),
    ) as process:
        try:
            outcomes = _outcomes(process, offsets, library)
        finally:
            process.kill()
    return [
        Trial(names=tuple(sorted(names[offset])), offset=offset, how=how, reason=reason)
        for offset, (how, reason) in zip(offsets, outcomes, strict=True)
    ]


def _outcomes(process: subprocess.Popen[str], offsets: list[int], library: Path) -> list[list[str]]:
    assert process.stdout is not None and process.stderr is not None
    greeting = process.stdout.readline().split(maxsplit=1)
    if not greeting:
        said = process.stderr.read().strip().splitlines()
        raise DriverFileError(f"{library} cannot be loaded: {said[-1] if said else 'the process ended'}.")
    try:
        session = local_device().attach(process.pid)
        script = session.create_script(_AGENT.read_text(), name="trial", runtime="qjs")
        script.load()
        outcomes: Any = script.exports_sync.try_all(hex(int(greeting[0])), offsets)
    except Exception as error:
        raise ConfinedError(f"Frida could not try the hooks of {library}: {error}.") from error
    # Frida's text contains an address in this very process.
    return [[how, re.sub(r" at 0x[0-9a-f]+; please file a bug", "", reason)] for how, reason in outcomes]
