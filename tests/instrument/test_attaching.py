"""What goes wrong while Frida attaches is told in a sentence, whatever it is."""

from __future__ import annotations

import os

import frida
import pytest

from ffm.instrument.attaching import attaching
from ffm.instrument.errors import InstrumentError


@pytest.mark.parametrize(
    "kind",
    [
        frida.InvalidArgumentError,
        frida.InvalidOperationError,
        frida.NotSupportedError,
        frida.OperationCancelledError,
        frida.PermissionDeniedError,
        frida.ProcessNotFoundError,
        frida.RPCException,
        frida.ServerNotRunningError,
        frida.TransportError,
    ],
)
def test_every_error_of_frida_names_the_process(kind: type[Exception]) -> None:
    with pytest.raises(InstrumentError, match=str(os.getpid())), attaching(os.getpid()):
        raise kind("invalid ID")
