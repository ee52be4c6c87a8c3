"""Quick mode: one traced run instead of the workflow of five stages."""

from __future__ import annotations

import shlex
from pathlib import Path
from typing import Any

SUFFIX = "-quick"
"""Of the folder for its results, next to that of a measurement with all stages."""


def measure_quickly(
    settings: dict[str, Any], *, stdin: Path | None = None, leave: bool = False, last_s: float | None = None
) -> Path:
    """Trace one run of the program that some settings name, and analyse it; return the folder with the results.

    `stdin` is what `--stdin` names, which takes precedence over a setting. `leave` the program running when it has been
    measured for the time that the settings say. With `last_s`, only so many seconds before the end are kept.

    Raises:
        FfmError: The settings are wrong, or the program could not be measured, or failed.
    """
    from ffm.cli.options import require_all
    from ffm.cli.running.progress import running
    from ffm.cli.standard_input import chosen_input
    from ffm.report.numbers import plural
    from ffm.results.folder.paths import ResultsFolder
    from ffm.stages.measure import Request
    from ffm.stages.quick import run_quick
    from ffm.workflow.settings import read_settings

    checked = read_settings(settings)
    require_all(last_s, checked.portion)
    folder = Path(checked.results if "results" in settings else checked.results + SUFFIX)
    read = chosen_input(stdin or (Path(checked.stdin) if checked.stdin else None), ResultsFolder(folder))
    request = Request(
        checked.command,
        ResultsFolder(folder),
        checked.timeout_s,
        accepted_status=checked.accepted_status,
        portion=checked.portion,
        for_s=checked.for_s,
        leave=leave,
        stdin=read,
        last_s=last_s,
    )
    with running("quick", shlex.join(checked.command)) as line:
        analysis = run_quick(request)
        line.wall_s = analysis.wall_s
        line.say(f"ran {analysis.wall_s:.2f} s, {plural(len(analysis.unproved), 'site')} that wait or transfer")
    return folder
