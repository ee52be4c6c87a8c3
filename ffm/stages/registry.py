"""The stages that run the program, and their tables, by the name that commands and files use.

One stage at a time runs in a results folder.
"""

from __future__ import annotations

from collections.abc import Callable

from ffm.evidence.operations import EVENTS
from ffm.evidence.transfers.downloads import DOWNLOADS
from ffm.evidence.transfers.host_memory import HOST_MEMORY
from ffm.results.columnar.columns import Table
from ffm.results.documents.document import Document
from ffm.results.documents.files import missing
from ffm.results.folder.identity import BUILT_ON
from ffm.results.folder.lock import writing_to
from ffm.stages.baseline import run_baseline
from ffm.stages.measure import Request, require_program
from ffm.stages.memory import run_memory
from ffm.stages.sync_use import run_sync_use
from ffm.stages.tables import ACCESSES, FIRST_USES, GPU_TIME_TABLE, SYNCHRONIZATIONS, TRANSFERS
from ffm.stages.tracing import run_tracing

MEASURING_STAGES: dict[str, Callable[[Request], Document]] = {
    "baseline": run_baseline,
    "tracing": run_tracing,
    "memory": run_memory,
    "sync-use": run_sync_use,
}

TABLES: dict[str, dict[str, Table]] = {
    "baseline": {},
    "tracing": {"events": EVENTS, "host_memory": HOST_MEMORY},
    "memory": {
        "synchronizations": SYNCHRONIZATIONS,
        "transfers": TRANSFERS,
        "accesses": ACCESSES,
        "downloads": DOWNLOADS,
        "gpu_times": GPU_TIME_TABLE,
    },
    "sync-use": {"first_uses": FIRST_USES},
}
"""The tables of each stage's document."""


def run_stage(name: str, request: Request) -> Document:
    """Run a stage, with exclusive use of its results folder.

    Raises:
        DocumentError: Another process writes there, or an earlier stage is missing or out of date.
        ProgramError: The program could not be measured, or failed.
        OSError: The folder cannot be written.
    """
    for earlier in BUILT_ON[name]:
        if not request.folder.document(earlier).exists():
            raise missing(request.folder.document(earlier), earlier)
    require_program(request)
    request.folder.make()
    with writing_to(request.folder.root, f"ffm stage {name}"):
        return MEASURING_STAGES[name](request)
