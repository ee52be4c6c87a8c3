"""Files that tell the collector what it cannot see itself: which operations to watch, and what kernels never read."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

import numpy as np
import xxhash

from ffm.driver.device_sources import sources_of_file
from ffm.driver.unread_parameters import unread_parameters
from ffm.evidence.named_work import all_launched
from ffm.evidence.operations import EVENTS
from ffm.instrument.recording.layout import constant, record_type
from ffm.results.columnar.tables import stored_table
from ffm.results.documents.measured import Tracing
from ffm.whole_file import write_whole

_MANGLED = "_Z"
"""What the names of C++ begin with. Of those, one name has one definition (ISO C++, [basic.def.odr]); kernels with
plain names can be different ones in different files.
"""


def write_watch_plan(keys: list[bytes], path: Path) -> None:
    """Write the keys of the transfer stacks that the collector should watch, sorted.

    Raises:
        OSError: The file cannot be written.
    """
    header = np.array([(b"FFMWATCH", constant("FFM_VERSION"), len(keys))], record_type("ffm_plan_header"))
    write_whole(path, header.tobytes() + b"".join(sorted(keys)))


def write_unread(files: Iterable[str], tracing: Tracing | None, folder: Path) -> Path:
    """Write into a results folder what the kernels of a program's files never read; return the file.

    Libraries have thousands of kernels. If stage 2 knows the names of all that the program launches, only these count.

    Raises:
        OSError: The file cannot be written.
        DocumentError: What stage 2 wrote is damaged.
    """
    launched = None
    if tracing is not None:
        launched = all_launched(tracing.kernels, stored_table(tracing, "events", EVENTS, folder))
    sources = (source for file in sorted(set(files)) for source in sources_of_file(Path(file)))
    found = [one for one in unread_parameters(sources, launched) if one.kernel.startswith(_MANGLED)]
    rows = np.array(sorted((*_hashed(one.kernel), one.begin, one.end) for one in found), record_type("ffm_unread"))
    path = folder / "parameters.plan"
    header = np.array([(b"FFMUNREA", constant("FFM_VERSION"), len(rows))], record_type("ffm_plan_header"))
    write_whole(path, header.tobytes() + rows.tobytes())
    return path


def _hashed(name: str) -> tuple[int, int]:
    """Return the higher and the lower half of the hash by which the collector finds a name."""
    return divmod(xxhash.xxh3_128_intdigest(name.encode()), 1 << 64)
