"""What the counts of other projects' tests have in common: causes of failures, and a file of results that grows."""

from __future__ import annotations

import json
import os
import re
import time
from collections import Counter
from pathlib import Path

LONGEST_CAUSE = 300
_RAISED = re.compile(
    r"^(?:E +)?((?:[A-Za-z_]\w*\.)*[A-Za-z_]\w*(?:Error|Exception|Failure|Warning|Timeout)\b.*)$", re.MULTILINE
)


def cause(block: str) -> str:
    """Return the line of a traceback that names the exception; the last line where none does."""
    raised = _RAISED.findall(block)
    lines = [line.strip() for line in block.splitlines() if line.strip(" -=")]
    told = raised[-1] if raised else lines[-1] if lines else ""
    return str(told)[:LONGEST_CAUSE]


class Results:
    """Counts by module, in a JSON file if there is one: what was counted before stays."""

    def __init__(self, path: Path | None) -> None:
        """Read what the file holds, if it is there.

        Raises:
            OSError: The file cannot be read.
            ValueError: It is no JSON.
        """
        self.path = path
        there = path is not None and path.exists()
        self.modules: dict[str, dict[str, object]] = json.loads(path.read_bytes()) if path and there else {}

    def missing(self, names: list[str]) -> list[str]:
        """Return the modules that have not been counted."""
        return [name for name in names if name not in self.modules]

    def add(self, name: str, counts: Counter[str], failures: dict[str, str]) -> None:
        """Add a module's counts, and what each test that failed says; write the file.

        Raises:
            OSError: The file cannot be written.
        """
        self.modules[name] = {
            "counts": dict(counts),
            "failures": failures,
            "date": time.strftime("%Y-%m-%d %H:%M"),
            "load": round(os.getloadavg()[0], 1),
        }
        if self.path is not None:
            draft = self.path.with_suffix(".draft")
            draft.write_text(json.dumps(dict(sorted(self.modules.items())), indent=1) + "\n")
            draft.replace(self.path)

    def total(self, names: list[str]) -> Counter[str]:
        """Return the sum over these modules."""
        total: Counter[str] = Counter()
        for name in names:
            counts = self.modules.get(name, {}).get("counts", {})
            assert isinstance(counts, dict)
            total += Counter(counts)
        return total
