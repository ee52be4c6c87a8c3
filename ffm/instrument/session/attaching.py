"""Attach Frida to a process that waits at the gate, or explain why that fails."""

from __future__ import annotations

import queue
import re
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import frida

from ffm.errors import InstrumentError

LIMIT = 60.0
"""Seconds allowed for Frida: a hundred times what it needs on a busy machine."""
GRACE, TICK = 2.0, 0.1
"""Seconds allowed after the process has ended; seconds between two checks."""


_FORBIDDEN = (
    " The program may be started so that its memory cannot become executable (PR_SET_MDWE, MemoryDenyWriteExecute of "
    "systemd): then it can only be measured without that."
)


class UnresponsiveError(InstrumentError):
    """Frida gave up on a process before its agent was ready, after five seconds.

    Frida then frees the memory from which its thread in the process was about to go on, so the process ends by SIGSEGV
    as soon as that thread gets a processor.
    """


@contextmanager
def attaching(process_id: int) -> Iterator[None]:
    """Limit the time of attaching Frida to a process, and turn its errors into sentences.

    Raises:
        UnresponsiveError: The machine is so busy that Frida gave up. The process must not go on.
        InstrumentError: Frida cannot attach, or the process has ended meanwhile; the caller can tell which.
    """
    process = f"the process {process_id} ({_name_of(process_id)})"
    tracer = _other_tracer_of(process_id)
    if tracer is not None:
        raise InstrumentError(
            f"Frida cannot attach to {process}: {_name_of(tracer)} (process {tracer}) already traces it, and a process "
            "can have only one tracer. Run the program without that tracer."
        )
    cancellable = frida.Cancellable()  # type: ignore[no-untyped-call]
    over = threading.Event()
    threading.Thread(target=_cancel_in_time, args=(process_id, cancellable, over), daemon=True).start()
    try:
        with cancellable:
            yield
    except frida.OperationCancelledError:
        raise InstrumentError(
            f"Frida did not get into {process} within {LIMIT:.0f} s. Run the stage again; `ffm doctor` tries whether "
            "attaching works on this machine."
        ) from None
    except frida.ProcessNotRespondingError as error:
        raise UnresponsiveError(
            f"Frida did not get into {process} in time: {error}. The machine is too busy; run the stage again."
        ) from error
    except frida.PermissionDeniedError as error:
        raise InstrumentError(
            f"Frida may not attach to {process}: {error}. It needs ptrace; `ffm doctor` says whether this machine "
            "allows it."
        ) from error
    except _failures() as error:
        forbidden = _FORBIDDEN if "allocate memory" in str(error) else ""
        raise InstrumentError(
            f"Frida could not attach to {process}: {error}.{forbidden} `ffm doctor` says what this machine allows."
        ) from error
    finally:
        over.set()


def scripted(device: Any, process_id: int, agent: str) -> tuple[Any, Any, queue.SimpleQueue[Any]]:
    """Load the script `agent` into a process through Frida's `device`; return the session, the script and its messages.

    The messages end with None. A process that replaced itself by `exec` has the number under which Frida knows what it
    was before. Until Frida has seen that connection close, it may answer with it; then it is asked again.
    """
    end = time.monotonic() + LIMIT
    while True:
        try:
            # Frida's own signal handlers would swallow the program's; a fault must end it as it would without ffm.
            session = device.attach(process_id, exceptor="off", exit_monitor=False)
            script = session.create_script(agent, name="ffm", runtime="qjs")
            messages = _messages_of(script)
            script.load()
            return session, script, messages
        except (frida.TransportError, frida.ProtocolError):  # the second where it closes while the agent starts
            if _has_ended(process_id) or time.monotonic() > end:
                raise
            time.sleep(TICK)


def _messages_of(script: Any) -> queue.SimpleQueue[Any]:
    messages: queue.SimpleQueue[Any] = queue.SimpleQueue()

    def receive(message: Any, _data: bytes | None) -> None:
        messages.put(message)

    script.on("message", receive)
    script.on("destroyed", lambda: messages.put(None))
    return messages


def _cancel_in_time(process_id: int, cancellable: frida.Cancellable, over: threading.Event) -> None:
    """Cancel Frida's work when the time is up, or shortly after the process has ended, which Frida can miss."""
    end = time.monotonic() + LIMIT
    while not over.wait(TICK):
        if _has_ended(process_id):
            end = min(end, time.monotonic() + GRACE)
        if time.monotonic() > end:
            cancellable.cancel()
            return


def _failures() -> tuple[type[Exception], ...]:
    """Return what Frida raises if it cannot attach, if the agent cannot start, or if the process ends meanwhile."""
    return tuple(kind for kind in vars(frida).values() if isinstance(kind, type) and issubclass(kind, Exception))


def _other_tracer_of(process_id: int) -> int | None:
    """Return the process or thread that traces this one, or None.

    Frida, which traces from our own threads, may not yet have released a process that replaced itself by exec.
    """
    end = time.monotonic() + LIMIT
    tracer = _tracer_of(process_id)
    while tracer is not None and Path(f"/proc/self/task/{tracer}").exists() and time.monotonic() < end:
        time.sleep(0.01)
        tracer = _tracer_of(process_id)
    return tracer


def _tracer_of(process_id: int) -> int | None:
    try:
        status = Path(f"/proc/{process_id}/status").read_text()
    except OSError:
        return None  # it has ended
    found = re.search(r"^TracerPid:\s*([1-9]\d*)", status, re.MULTILINE)
    return None if found is None else int(found[1])


def _has_ended(process_id: int) -> bool:
    """Return whether a process has ended, even if its status has not been collected yet."""
    try:
        status = Path(f"/proc/{process_id}/stat").read_text()
    except OSError:
        return True
    return status.rpartition(")")[2].split()[0] in ("Z", "X")


def _name_of(process_id: int) -> str:
    try:
        return Path(f"/proc/{process_id}/comm").read_text().strip()
    except OSError:
        return "which has ended"
