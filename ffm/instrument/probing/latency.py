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

from ffm.instrument.probing.probe_session import importing_environment

SECONDS = 60.0
"""More than a driver needs to start."""


@dataclass(frozen=True, slots=True)
class WaitLatency:
    """Nanoseconds of a wait that are not GPU work."""

    least: int
    """Nine of ten waits take more."""
    reason: str = ""
    """Why it is unknown, and `least` is 0; empty if it is known."""


def wait_latency(driver: Path) -> WaitLatency:
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
        return WaitLatency(0, str(answer["error"]))
    measured = sorted(answer["latencies"])
    return WaitLatency(measured[len(measured) // 10])
