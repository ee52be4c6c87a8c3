"""Which GPU a driver has, determined in a separate process."""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
from pathlib import Path

from ffm.instrument.probing.probe_session import importing_environment

SECONDS = 60.0
"""More than a driver needs to start."""


def compute_capability(driver: Path) -> int:
    """Return the compute capability of the first GPU, 10 * major + minor; 0 if the driver has none."""
    with tempfile.TemporaryDirectory(prefix="ffm-") as scratch:
        order, answer = Path(scratch) / "order.json", Path(scratch) / "answer.json"
        order.write_text(json.dumps({"library": str(driver), "names": [], "versions": []}))
        try:
            subprocess.run(
                [sys.executable, "-m", "ffm.doctor.subject", str(order), str(answer)],
                env=importing_environment(),
                capture_output=True,
                timeout=SECONDS,
                check=True,
            )
        except subprocess.SubprocessError:
            return 0
        major, minor = json.loads(answer.read_text()).get("capability") or (0, 0)
        return 10 * int(major) + int(minor)
