"""Whether the marked lines of a target are found with the right verdict."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from steps import Row

_MARK = re.compile(r"# (?:problem: (\w+)|needed:)")


def problem_rows(name: str, source: Path, analysis: dict[str, Any]) -> Iterator[Row]:
    """Return a row for each marked line of the script `source`, given the document of its analysis."""
    for number, line in enumerate(source.read_text().splitlines(), 1):
        mark = _MARK.search(line)
        if mark is None:
            continue
        sites = [site for site in analysis["sites"] if _passes(analysis, site, source, number)]
        found = {verdict["kind"] for site in sites for verdict in (*site["synchronization"], *site["transfer"])}
        problems = sum(site["problem_count"] for site in sites)
        kind = mark[1] or "needed"
        good = {
            "unnecessary": bool(found & {"unnecessary", "conditionally unnecessary"}),
            "misplaced": problems > 0,
            "transfer": bool(found & {"no-op", "repeat", "copy"}),
            "any": problems > 0,
            "needed": "required" in found and problems == 0,
        }[kind]
        functions = sorted({site["function"] for site in sites if "function" in site})
        says = f"{kind}: {', '.join(sorted(found)) or 'nothing found'}; {problems} problems in {len(sites)} sites"
        yield Row(f"{name}:{number}", good, f"{says} {' '.join(functions)}".strip())


def _passes(analysis: dict[str, Any], site: dict[str, Any], source: Path, line: int) -> bool:
    """Return whether a site's stack goes through a line of a script."""
    if Path(site["file"]).name == source.name and site["line"] == line:
        return True
    numbers = (number for chain in analysis["stacks"][site["stack"]]["chains"] for number in analysis["chains"][chain])
    frames = (analysis["frames"][number] for number in numbers)
    return any(Path(frame.get("file") or "").name == source.name and frame.get("line") == line for frame in frames)
