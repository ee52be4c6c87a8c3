"""Python runs this at its start: ffm then puts the sanitized build of its libraries into programs (`make sanitize`)."""

import importlib.util
import os

if "FFM_SANITIZED" in os.environ and importlib.util.find_spec("ffm") is not None:
    import ffm.instrument

    ffm.instrument.__path__.insert(0, os.environ["FFM_SANITIZED"])
