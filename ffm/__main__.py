"""The command `ffm`, also as `python -m ffm`. Ctrl-C during its imports also ends with a sentence, not a traceback."""

from __future__ import annotations

import atexit
import os
import sys
from typing import NoReturn

STANDING = ("frida._frida", "numba")
"""With one of these modules, the interpreter is not taken down at the end."""


def main() -> None:
    """Import the command line and run it."""
    try:
        from ffm.cli.main import main as command_line
    except KeyboardInterrupt:
        sys.stderr.write("ffm: interrupted.\n")
        sys.exit(130)
    try:
        command_line()
    except SystemExit as ending:
        if isinstance(ending.code, int) and any(name in sys.modules for name in STANDING):
            _end_standing(ending.code)
        raise


def _end_standing(status: int) -> NoReturn:
    """End the process as Python does, but for taking the interpreter down.

    Frida's threads live as long as the process, and what they still have to tell they tell by calling Python: without
    an interpreter that is a SIGSEGV. Taking all objects of Numba apart takes 0.4 s.
    """
    from ffm.cli.system_errors import finish_output

    atexit._run_exitfuncs()
    for stream in (sys.stdout, sys.stderr):
        finish_output(stream)
    os._exit(status)


if __name__ == "__main__":
    main()
