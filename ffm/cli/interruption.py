"""Termination by Ctrl-C, SIGTERM or a closing terminal. All unwind the stack, so that the measured program ends too."""

from __future__ import annotations

import contextlib
import signal
import sys
from collections.abc import Iterator
from types import FrameType
from typing import NoReturn

import click

CODE_OF_SIGNAL = 128
"""What a shell adds to a signal's number to form the exit status."""


class Terminated(KeyboardInterrupt):
    """A signal other than that of Ctrl-C asked ffm to end."""

    def __init__(self, number: int) -> None:
        super().__init__(signal.Signals(number).name)
        self.number = number


_raised: list[KeyboardInterrupt] = []
"""What the handlers raised. Code that a library calls back (ctypes, `__del__`) may lose it on its way."""


def unwind_when_terminated() -> None:
    """Make SIGTERM and SIGHUP unwind as Ctrl-C does. Ignored signals (`nohup`) stay ignored."""
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        if signal.getsignal(number) in (signal.SIG_DFL, signal.default_int_handler):
            signal.signal(number, _unwind)
    sys.unraisablehook = _report_others


@contextlib.contextmanager
def interruptible(note: str) -> Iterator[None]:
    """Have an interruption of the block say this, besides that it occurred."""
    try:
        yield
    except KeyboardInterrupt as interruption:
        interruption.add_note(note)
        raise


def end_when_terminated() -> None:
    """Let the signals end the process directly: everything has been written and said."""
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        if signal.getsignal(number) is _unwind:
            signal.signal(number, signal.SIG_DFL)


def raise_what_was_lost(note: str = "") -> None:
    """Raise an interruption that never arrived, or was put off; `note` says more of it. Raises `KeyboardInterrupt`."""
    if not _raised:
        return
    if note:
        _raised[0].add_note(note)
    raise _raised[0]


def _unwind(number: int, _frame: FrameType | None) -> NoReturn:
    _raised.append(KeyboardInterrupt() if number == signal.SIGINT else Terminated(number))
    raise _raised[-1]


def _report_others(lost: sys.UnraisableHookArgs) -> None:
    """Say nothing of an interruption that is lost on its way: it is raised again later."""
    if lost.exc_value not in _raised:
        sys.__unraisablehook__(lost)


def tell(error: BaseException) -> int:
    """Print one line that says ffm was interrupted, with any notes added on the way; return the exit status."""
    # At a question click says `from None`, which leaves only the context.
    cause = (error.__cause__ or error.__context__ or error) if isinstance(error, click.Abort) else error
    by, number = ("ended by " + str(cause), cause.number) if isinstance(cause, Terminated) else ("interrupted", 2)
    with contextlib.suppress(OSError):  # a terminal that went away
        click.echo(" ".join([f"ffm: {by}.", *getattr(cause, "__notes__", [])]), err=True)
    return CODE_OF_SIGNAL + number
