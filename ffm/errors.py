"""Errors of ffm that users see. Each says what happened, where, and what to do next."""

from __future__ import annotations

from typing import ClassVar


class FfmError(Exception):
    """Base of every error of ffm. The command line prints it as one sentence or two, with a non-zero exit status.

    `what` says what happened and where. What to do next is the class's `help`, if that is the same each time;
    otherwise `what` says it, too.
    """

    exit_status: ClassVar[int] = 1
    help: str = ""

    def __init__(self, what: str) -> None:
        super().__init__(what)
        self.what = what

    def __str__(self) -> str:
        """Return everything that the user sees."""
        return f"{self.what} {self.help}".rstrip()


class CauseError(FfmError):
    """Why something failed, as a phrase: who catches it says where that was, and what to do next."""


class DocumentError(FfmError):
    """A results folder or document is missing, damaged, or of another version."""


class UnreadableError(DocumentError):
    """The system does not let ffm read a file."""

    help = "Check that it is a file, and that you may read it."

    def __init__(self, what: str, error: OSError) -> None:
        super().__init__(f"{what} cannot be read: {error.strerror or error}.")


class SourceError(DocumentError):
    """What another tool recorded cannot be imported."""

    help = "Record it again, or name another file."


class InstrumentError(FfmError):
    """The program could not be started or instrumented, or its recording could not be read."""


class ConfinedError(InstrumentError):
    """A process that ffm started to try something did not do it."""

    help = "Check what confines processes here: a container, a security module, limits (`ulimit -a`)."


class OpenFilesError(InstrumentError):
    """A process may not open as many files as instrumenting it takes."""

    help = "Raise the limit: `ulimit -n 4096` in the shell, unless the program lowers it itself."


class RecordingError(InstrumentError):
    """What a run recorded is damaged, or was recorded by another ffm."""

    help = "Run the stage again."


class BuildError(InstrumentError):
    """A library of ffm's is missing, or was built from other sources."""

    help = "Run `make setup`."


class ProgramError(FfmError):
    """The measured program did not do what a measurement needs, or cannot be described in results."""
