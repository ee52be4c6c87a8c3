"""The file that tells the collector which operations to watch."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from ffm.instrument.recording.layout import constant, record_type
from ffm.whole_file import write_whole


def write_watch_plan(keys: list[bytes], path: Path) -> None:
    """Write the keys of the transfer stacks that the collector should watch, sorted.

    Raises:
        OSError: The file cannot be written.
    """
    header = np.array([(b"FFMWATCH", constant("FFM_VERSION"), len(keys))], record_type("ffm_plan_header"))
    write_whole(path, header.tobytes() + b"".join(sorted(keys)))
