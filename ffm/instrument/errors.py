"""Errors of the instruments. Each message says what happened, where, and what to do next."""

from __future__ import annotations


class InstrumentError(Exception):
    """The program could not be started or instrumented, or its recording could not be read."""
