"""Prints errors of Snakemake itself as one sentence.

The profile makes Snakemake quiet, since each stage prints its own line. That also hides errors outside of the stages,
such as a home folder that cannot be written.
"""

from __future__ import annotations

import re
import signal
import sys
from logging import LogRecord

from snakemake_interface_logger_plugins.base import LogHandlerBase
from snakemake_interface_logger_plugins.common import LogEvent

OF_STAGES = frozenset({"RuleException", "CalledProcessError"})
"""The exceptions of a stage that failed, which has already printed its own error."""
A_STAGE_FAILED = "At least one job did not complete"

_STAGE = re.compile(
    r" ffm stage (?P<name>[\w-]+) .*?(died with <Signals\.(?P<signal>\w+)|exit status (?P<status>\d+))", re.S
)
_SHELL_SIGNAL = 128
"""What a shell adds to the number of a signal that ended its command."""


def stage_that_was_killed(message: str) -> str:
    """Return a sentence about a stage that a signal ended, which could then say nothing itself; else nothing."""
    found = _STAGE.search(message)
    if found is None:
        return ""
    name = found["signal"] or _signal_of(int(found["status"]))
    if not name or name == signal.SIGINT.name:
        return ""
    often = ": the system does that where memory runs out" if name == signal.SIGKILL.name else ""
    return f"{name} ended the stage {found['name'].replace('-', ' ')}{often}."


def _signal_of(status: int) -> str:
    try:
        return signal.Signals(status - _SHELL_SIGNAL).name
    except ValueError:
        return ""


class LogHandler(LogHandlerBase):
    """Prints what a quiet Snakemake does not."""

    @property
    def writes_to_stream(self) -> bool:
        """False: Snakemake's own handler stays, for dry runs."""
        return False

    @property
    def writes_to_file(self) -> bool:
        """False."""
        return False

    @property
    def has_filter(self) -> bool:
        """True: being quiet does not hide errors."""
        return True

    @property
    def has_formatter(self) -> bool:
        """True."""
        return True

    @property
    def needs_rulegraph(self) -> bool:
        """False."""
        return False

    def emit(self, record: LogRecord) -> None:
        """Print the last line of an error that nobody else prints; that of a traceback names the exception."""
        if getattr(record, "event", None) != LogEvent.ERROR or not self._is_quiet():
            return
        if killed := stage_that_was_killed(record.getMessage()):
            print(f"ffm: {killed}", file=sys.stderr)
        lines = record.getMessage().strip().splitlines()
        exception = getattr(record, "exception", None)
        if not lines or exception in OF_STAGES or A_STAGE_FAILED in lines[-1]:
            return
        hint = (
            "; set XDG_CACHE_HOME to a folder that you can write" if "/snakemake/sourcecache.py" in str(lines) else ""
        )
        print(f"ffm: Snakemake failed: {lines[-1].strip().rstrip('.')}{hint}.", file=sys.stderr)

    def _is_quiet(self) -> bool:
        quiet = self.common_settings.quiet or ()
        return any(str(item).casefold().endswith("all") for item in quiet) and not self.common_settings.dryrun
