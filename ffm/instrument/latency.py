"""What a wait for the GPU takes beyond the GPU's own time.

Between a call that gives an idle GPU work and the return of the wait for it lie, beside the work, the way of the work
to the GPU and the waking of the waiting thread. A trace of waits cannot tell this time from the GPU's, where each wait
has it. The GPU's events can (CUDA Driver API, `cuEventElapsedTime`: half a microsecond exact): so it is measured with
a small piece of work of another process, on this machine, and not in the program.
"""

from __future__ import annotations

import json
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

from ffm.instrument.probe_session import importing_environment

SECONDS = 60.0
"""More than a driver needs to start."""


@dataclass(frozen=True, slots=True)
class WaitLatency:
    """Nanoseconds of a wait that are not the GPU's work."""

    least: int
    """Nine of ten waits have more."""
    reason: str = ""
    """Why it is not known, and `least` is 0; empty where it is known."""


def wait_latency(driver: Path) -> WaitLatency:
    """Measure the latency of waiting with a driver, in a process of its own."""
    try:
        done = subprocess.run(
            [sys.executable, "-m", "ffm.instrument.latency_probe", str(driver)],
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
