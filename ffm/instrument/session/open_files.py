"""How many more files a process may open. If they are too few, Frida ends, or waits for an agent that cannot answer."""

from __future__ import annotations

import os
import re
from pathlib import Path

from ffm.errors import OpenFilesError

NEEDED = 40
"""What the agent and a recording open in a process, or ffm for one: 32 with Frida 17.25, and some more."""


def require_open_files(process_id: int) -> None:
    """Refuse a process that may open too few files to be instrumented, or to instrument others.

    Raises:
        OpenFilesError: Says how many.
    """
    try:
        limits = Path(f"/proc/{process_id}/limits").read_text()
        opened = sum(1 for _ in Path(f"/proc/{process_id}/fd").iterdir())
        name = Path(f"/proc/{process_id}/comm").read_text().strip()
    except (FileNotFoundError, ProcessLookupError):
        return  # it has ended, which its runner notices
    except OSError as error:
        raise OpenFilesError(f"ffm cannot see how many files it has open ({error.strerror}).") from error
    most = re.search(r"^Max open files\s+(\d+)", limits, re.MULTILINE)
    if most is None or int(most[1]) - opened >= NEEDED:  # not a number: unlimited
        return
    who = "ffm" if process_id == os.getpid() else f"The process {process_id} ({name})"
    raise OpenFilesError(f"{who} may have {most[1]} files open and has {opened}, but measuring takes {NEEDED} more.")
