"""Errors of ffm that users see. Each message says what happened, where, and what to do next."""

from __future__ import annotations

from typing import ClassVar


class FfmError(Exception):
    """Base of every error that the command line prints as one sentence with a non-zero exit status."""

    exit_status: ClassVar[int] = 1


class DocumentError(FfmError):
    """A results folder or document is missing, damaged, or of another version."""


class InstrumentError(FfmError):
    """The program could not be started or instrumented, or its recording could not be read."""


class ProgramError(FfmError):
    """The measured program did not do what a measurement needs, or cannot be described in results."""
