"""What ffm says about the call sites that each twin of a sample corrects: `python estimates.py RESULTS SAMPLE`.

Prints a JSON object: twin -> estimated saving in seconds, its interval, and the share of the waiting time at these call
sites that has a verdict as a problem.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

from accuracy import estimate
from common.twins import truth_of


def main(results: Path, name: str) -> int:
    """Print the estimates; return the exit status."""
    answer = {}
    for twin, entries in truth_of(name).items():
        found = estimate(results, entries)
        answer[twin] = {
            "estimate_s": found.likely_s,
            "interval_s": found.interval,
            "estimators_s": found.seconds,
            "named_share": found.share,
        }
    print(json.dumps(answer))
    return 0


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1]), sys.argv[2]))
