"""Where the compiled parts of the instruments lie."""

from __future__ import annotations

from pathlib import Path

import ffm.instrument
from ffm.instrument.errors import InstrumentError

COLLECTOR = "libffm_collector.so"
"""What records the program's calls."""


def native_library(name: str) -> Path:
    """Return the path of a library built from `ffm/instrument/collector`, such as `libffm_collector.so`.

    Raises:
        InstrumentError: it was not built.
    """
    for folder in ffm.instrument.__path__:
        candidate = Path(folder) / "lib" / name
        if candidate.exists():
            return candidate.resolve()
    raise InstrumentError(f"{name} is not built. Run `make setup`.")
