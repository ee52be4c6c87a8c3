"""A run of a program, as a stage's document has it, for tests that need some of its fields."""

from __future__ import annotations

from typing import Any

import msgspec

from ffm.results.documents.run import ExitStatus, Run

_SOME_RUN = Run(
    stage="tracing",
    command=["./app"],
    working_directory="/",
    started="",
    wall_s=1.0,
    preparation_s=0.0,
    user_s=0.0,
    system_s=0.0,
    status=ExitStatus(code=0),
    processes=[],
    hooks=[],
    driver=None,
)


def a_run(**fields: Any) -> Run:
    """Return a run that took a second and ended well, apart from the given fields."""
    return msgspec.structs.replace(_SOME_RUN, **fields)
