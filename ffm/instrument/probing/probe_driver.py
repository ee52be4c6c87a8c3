"""A driver whose functions are called in this process; for the probe and the examination."""

from __future__ import annotations

import ctypes
from pathlib import Path
from typing import Any

from ffm.driver.catalogue import load_catalogue
from ffm.errors import CauseError

_PR_SET_PTRACER = 0x59616D61
_PR_SET_PTRACER_ANY = ctypes.c_ulong(-1).value


class ProbeError(CauseError):
    """The driver refused something that the probe needs."""


class Driver:
    """The driver's functions, each called by its purpose (`own_calls` of the catalogue) or by an exported name."""

    def __init__(self, path: str) -> None:
        try:
            self._library = ctypes.CDLL(path)
        except OSError as error:
            raise ProbeError(f"the driver cannot be loaded: {error}") from error

    def exports(self, name: str) -> bool:
        """Return whether the driver exports `name`."""
        return hasattr(self._library, name)

    def name(self, call: str) -> str:
        """Return the exported name of a call: the first form that the driver has, or the first one if it has none."""
        names = load_catalogue().own_calls.get(call, (call,))
        return next(filter(self.exports, names), names[0])

    def has(self, call: str) -> bool:
        """Return whether the driver exports a call."""
        return self.exports(self.name(call))

    def address(self, call: str) -> int:
        """Return the address of an exported function."""
        return ctypes.cast(getattr(self._library, self.name(call)), ctypes.c_void_p).value or 0

    def __call__(self, call: str, *arguments: Any) -> None:
        """Make a call. Raises `ProbeError` if the driver does not export it or it returns an error."""
        result = self.result(call, *arguments)
        if result != 0:
            raise ProbeError(f"{self.name(call)} returned the error {result}{self.meaning(result)}")

    def result(self, call: str, *arguments: Any) -> int:
        """Make a call and return its `CUresult`. Raises `ProbeError` if the driver does not export it."""
        if not self.has(call):
            raise ProbeError(f"the driver does not export {self.name(call)}")
        return int(getattr(self._library, self.name(call))(*arguments))

    def meaning(self, result: int) -> str:
        """Return the name of an error in parentheses; empty if the driver does not know it."""
        text = ctypes.c_char_p()
        if self.has("error_name") and self.result("error_name", result, ctypes.byref(text)) == 0:
            return f" ({(text.value or b'').decode()})"
        return ""


def loaded_at(address: int) -> tuple[int, str]:
    """Return the base address and the path of this process's module that contains `address`."""
    rows = [line.split(maxsplit=5) for line in Path("/proc/self/maps").read_text().splitlines()]
    files: dict[str, list[tuple[int, int]]] = {}
    for row in rows:
        if len(row) == 6:
            first, last = (int(part, 16) for part in row[0].split("-"))
            files.setdefault(row[5], []).append((first, last))
    for path, ranges in files.items():
        if any(first <= address < last for first, last in ranges):
            return min(first for first, _ in ranges), path
    raise ProbeError("the driver is not in the process's list of mapped files")


def traceable_by_anyone() -> None:
    """Let a process that is not our parent attach, where the Yama security module restricts that."""
    ctypes.CDLL(None).prctl(_PR_SET_PTRACER, ctypes.c_ulong(_PR_SET_PTRACER_ANY), 0, 0, 0)
