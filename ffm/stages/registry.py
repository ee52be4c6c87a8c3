"""The stages that run the program, by the name that commands and files use."""

from __future__ import annotations

from collections.abc import Callable

from ffm.stages.baseline import run_baseline
from ffm.stages.documents import Document
from ffm.stages.measure import Request
from ffm.stages.memory import run_memory
from ffm.stages.sync_use import run_sync_use
from ffm.stages.tracing import run_tracing

MEASURING_STAGES: dict[str, Callable[[Request], Document]] = {
    "baseline": run_baseline,
    "tracing": run_tracing,
    "memory": run_memory,
    "sync-use": run_sync_use,
}
