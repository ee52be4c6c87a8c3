"""Errors of the stages. Each message says what happened, where, and what to do next."""

from __future__ import annotations


class FfmError(Exception):
    """Base of every error that the command line prints as one sentence with a non-zero exit status."""


class DocumentError(FfmError):
    """A results folder or document is missing, damaged, or of another version."""


class ProgramError(FfmError):
    """The measured program cannot be started, or did not do what a measurement needs."""
