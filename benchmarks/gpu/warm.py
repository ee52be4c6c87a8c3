"""Compiles the model's kernels, which Numba then caches, so that no later step waits for that: `python warm.py FOLDER`.

Measures a small program (`targets/bindings_constant.py`) in all stages, with the table size above which compiling pays
set to zero.
"""

from __future__ import annotations

import sys
from pathlib import Path

from ffm.model import compiled
from ffm.results.folder.paths import ResultsFolder
from ffm.stages.analysis.stage import run_analysis
from ffm.stages.measure import Request
from ffm.stages.registry import MEASURING_STAGES

PROGRAM = Path(__file__).with_name("targets") / "bindings_constant.py"


def main(folder: Path) -> int:
    """Measure the program with results in `folder`; return the exit status."""
    compiled.PLAIN_ROWS = -1
    folder.mkdir(parents=True, exist_ok=True)
    request = Request([sys.executable, str(PROGRAM)], ResultsFolder(folder), 60.0)
    for run in MEASURING_STAGES.values():
        run(request)
    run_analysis(request.folder)
    return 0


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1])))
