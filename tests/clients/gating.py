"""What the gate in quick mode says about a Python client."""

from __future__ import annotations

import os
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import orjson


@dataclass(frozen=True)
class Gated:
    """What `ffm check --quick` says of a script."""

    script: Path
    code: int
    view: dict[str, Any]

    def at(self, mark: str) -> list[tuple[str, int, int]]:
        """Return call, count and thread of what is against the rules on the line with a comment."""
        (line,) = (n for n, text in enumerate(self.script.read_text().splitlines(), 1) if text.endswith(f"# {mark}"))
        return [
            (one["call"], one["count"], one["thread"])
            for one in self.view["violations"]
            if (Path(one["file"]).name, one["line"]) == (self.script.name, line)
        ]


def gate(python: Path, script: Path, folder: Path, rules: str = "", *options: str) -> Gated:
    """Trace a script once and judge it; or judge it anew if the folder has its results."""
    (folder / "ffm.toml").write_text(rules)
    command = [] if (folder / "results").exists() else ["--quick", *options, "--", str(python), str(script)]
    done = subprocess.run(
        [sys.executable, "-m", "ffm", "check", "--format", "json", *(command or options)],
        cwd=folder, env={**os.environ, "COLUMNS": "100"}, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode in (0, 1), done.stderr
    return Gated(script, done.returncode, orjson.loads(done.stdout))
