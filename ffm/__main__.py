"""The command `ffm`, also as `python -m ffm`. Ctrl-C while it is still being imported gets its one sentence, too."""

from __future__ import annotations

import sys


def main() -> None:
    """Import the command line and run it."""
    try:
        from ffm.cli.main import main as command_line
    except KeyboardInterrupt:
        sys.stderr.write("ffm: interrupted.\n")
        sys.exit(130)
    command_line()


if __name__ == "__main__":
    main()
