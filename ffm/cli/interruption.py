"""Termination by Ctrl-C, SIGTERM or a closing terminal. All unwind the stack, so that the measured program ends too."""

from __future__ import annotations

import signal
from types import FrameType
from typing import NoReturn

import click

CODE_OF_SIGNAL = 128
"""What a shell adds to a signal's number to form the exit status."""


class Terminated(KeyboardInterrupt):
    """A signal other than Ctrl-C's asked ffm to end."""

    def __init__(self, number: int) -> None:
        super().__init__(signal.Signals(number).name)
        self.number = number


def unwind_when_terminated() -> None:
    """Make SIGTERM and SIGHUP unwind as Ctrl-C does. Ignored signals (`nohup`) stay ignored."""
    for number in (signal.SIGTERM, signal.SIGHUP):
        if signal.getsignal(number) == signal.SIG_DFL:
            signal.signal(number, _terminate)


def _terminate(number: int, _frame: FrameType | None) -> NoReturn:
    raise Terminated(number)


def tell(error: BaseException) -> int:
    """Print one line that says ffm was interrupted, with any notes added on the way; return the exit status."""
    cause = error.__cause__ if isinstance(error, click.Abort) and error.__cause__ is not None else error
    by, number = ("ended by " + str(cause), cause.number) if isinstance(cause, Terminated) else ("interrupted", 2)
    click.echo(" ".join([f"ffm: {by}.", *getattr(cause, "__notes__", [])]), err=True)
    return CODE_OF_SIGNAL + number
