"""Whatever goes wrong while Frida attaches is reported in a sentence, unless it is temporary."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Callable

import frida
import pytest

from ffm.errors import InstrumentError
from ffm.instrument.session.attaching import attaching, scripted


@pytest.mark.parametrize(
    "kind",
    [
        frida.InvalidArgumentError,
        frida.InvalidOperationError,
        frida.NotSupportedError,
        frida.OperationCancelledError,
        frida.PermissionDeniedError,
        frida.ProcessNotFoundError,
        frida.ProcessNotRespondingError,
        frida.RPCException,
        frida.ServerNotRunningError,
        frida.TransportError,
    ],
)
def test_every_error_of_frida_names_the_process(kind: type[Exception]) -> None:
    with pytest.raises(InstrumentError, match=str(os.getpid())), attaching(os.getpid()):
        raise kind("invalid ID")


class Script:
    """Reports that it is loaded, or first finds the connection closed, as often as its device says."""

    def __init__(self, device: Device) -> None:
        self.device = device
        self.told: dict[str, Callable[..., None]] = {}

    def on(self, event: str, told: Callable[..., None]) -> None:
        self.told[event] = told

    def load(self) -> None:
        if self.device.closed_at_load:
            self.device.closed_at_load -= 1
            self.told["destroyed"]()
            raise frida.TransportError("the connection is closed")
        self.told["message"]("loaded", None)


class Device:
    """Answers with a closed connection the given number of times."""

    def __init__(self, closed: int, closed_at_load: int = 0) -> None:
        self.closed, self.closed_at_load = closed, closed_at_load

    def attach(self, process_id: int, **_: object) -> Device:
        if self.closed:
            self.closed -= 1
            raise (frida.TransportError, frida.ProtocolError)[self.closed % 2]("the connection is closed")
        return self

    def create_script(self, agent: str, **_: object) -> Script:
        return Script(self)


def test_a_connection_of_what_the_process_was_before_is_not_taken() -> None:
    device = Device(2, closed_at_load=2)
    session, _, messages = scripted(device, os.getpid(), "agent")
    assert session is device
    assert messages.get_nowait() == "loaded", "messages of the earlier connection are not among them"
    assert messages.empty()


def test_a_process_that_has_ended_is_not_asked_again() -> None:
    with subprocess.Popen(["true"]) as ended:
        ended.wait()
        with pytest.raises(frida.ProtocolError):
            scripted(Device(2), ended.pid, "agent")
