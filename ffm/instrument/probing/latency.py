"""How much longer a wait for the GPU takes than the GPU's own work.

Between a call that gives work to an idle GPU and the return of the wait for it, time also passes while the work travels
to the GPU and the waiting thread wakes up. A trace of waits cannot separate this from the GPU's time, because every
wait contains it. The GPU's events can (CUDA Driver API, `cuEventElapsedTime`: resolution about half a microsecond). So
it is measured with a small piece of work in another process on this machine, not in the program.
"""

from __future__ import annotations

import json
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

from ffm.instrument.probing.latency_probe import COPIED_BYTES
from ffm.instrument.probing.probe_session import importing_environment

SECONDS = 60.0
"""More than a driver needs to start."""


@dataclass(frozen=True, slots=True)
class DriverTimes:
    """Nanoseconds that calls of a driver take by themselves."""

    least: int
    """Of a wait, what is not GPU work: nine of ten waits take more."""
    reason: str = ""
    """Why it is unknown, and `least` is 0; empty if it is known."""
    pinning_call: int = 0
    """Nanoseconds that pinning takes whatever the size, for a page; 0 if it is unknown."""
    copied_byte: float = 0.0
    """Nanoseconds that the GPU takes to copy a byte within its memory, the median of some copies; 0 if unknown."""


def wait_latency(driver: Path) -> DriverTimes:
    """Measure the latency of waits with a driver, in a separate process."""
    try:
        done = subprocess.run(
            [sys.executable, "-m", "ffm.instrument.probing.latency_probe", str(driver)],
            env=importing_environment(),
            capture_output=True,
            timeout=SECONDS,
            check=False,
        )
        answer = json.loads(done.stdout or "null") or {"error": f"the probe ended with {done.returncode}"}
    except (subprocess.TimeoutExpired, json.JSONDecodeError) as error:
        answer = {"error": f"the probe did not answer: {error}"}
    if "error" in answer:
        return DriverTimes(0, str(answer["error"]))
    measured, pinning = sorted(answer["latencies"]), sorted(answer["pinning"])
    copies = sorted(answer["copies"])
    return DriverTimes(
        measured[len(measured) // 10],
        pinning_call=pinning[len(pinning) // 2] if pinning else 0,
        copied_byte=copies[len(copies) // 2] / COPIED_BYTES if copies else 0.0,
    )
