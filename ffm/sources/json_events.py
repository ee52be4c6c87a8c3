"""Reads the events of a trace in Chrome's JSON format in parts, so that a large one does not have to fit into memory.

The format is that of "Trace Event Format" (Google): an object whose member `traceEvents` is a list of events. What
surrounds the list is small.
"""

from __future__ import annotations

import gzip
import re
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO, Generic, TypeVar

import msgspec
import numpy as np

from ffm.errors import DocumentError, SourceError, UnreadableError
from ffm.model.compiled import run
from ffm.sources import json_events_kernels as kernels

PART_BYTES = 1 << 22
LARGEST_EVENT_BYTES = 1 << 26
BYTES_PER_ROW = 20
"""Of text that takes as long as a row of a timeline."""

_GZIP = b"\x1f\x8b"
_BEGINS_EVENTS = re.compile(rb'"traceEvents"\s*:\s*\[\Z')
_NO_NUMBER = re.compile(rb"(?<=[:,\[])(\s*)-?(?:nan|inf|NaN|Infinity|-nan)(?=\s*[,}\]])")
"""JSON has no such numbers, but writers of traces do."""

Event = TypeVar("Event", bound=msgspec.Struct)
About = TypeVar("About", bound=msgspec.Struct)


class EventReader(Generic[Event, About]):
    """Reads one trace; `about` has what surrounds the events, once all of them are read."""

    def __init__(self, path: Path, event: type[Event], about: type[About], meant: str) -> None:
        """Prepare to read `path`; `meant` says in messages what kind of file that should be."""
        self.about = about()
        self._path, self._meant = path, meant
        self._events = msgspec.json.Decoder(list[event])  # type: ignore[valid-type]
        self._about = about
        self._state = np.zeros(4, np.int64)
        self._around = bytearray()
        self._found = False

    def parts(self) -> Iterator[list[Event]]:
        """Return the events, a few thousand at a time.

        Raises:
            DocumentError: The file is missing, damaged, cut off, or no trace of that kind.
        """
        if not self._path.is_file():
            raise DocumentError(f"{self._path} is not a file: name {self._meant}.")
        try:
            with self._path.open("rb") as raw:
                compressed = raw.read(2) == _GZIP
                raw.seek(0)
                if compressed:
                    with gzip.open(raw) as stream:
                        yield from self._read(stream)  # type: ignore[arg-type]
                else:
                    yield from self._read(raw)
        except (EOFError, zlib.error, gzip.BadGzipFile) as error:
            raise DocumentError(
                f"{self._path} cannot be decompressed to its end ({error}): copy or record it again."
            ) from None
        except OSError as error:
            raise UnreadableError(str(self._path), error) from error

    def _read(self, stream: BinaryIO) -> Iterator[list[Event]]:
        inside, kept = False, b""
        while data := stream.read(PART_BYTES):
            text = kept + data
            begin, at = 0, len(kept)
            while at < len(text):
                self._state[kernels.LAST] = -1
                view = np.frombuffer(text, np.uint8)
                at, reason = run(kernels.scan, len(data) // BYTES_PER_ROW, view, at, inside, self._state)
                if reason == kernels.TOO_DEEP:
                    raise SourceError(
                        f"{self._path} is nested more than {kernels.DEEPEST} deep: it is not {self._meant}."
                    )
                if inside:
                    last = int(self._state[kernels.LAST])
                    if last >= 0:
                        yield self._decoded(text[begin:last])
                        begin = last
                    if reason == kernels.CLOSED:
                        if text[begin : at - 1].strip(b" \t\r\n,"):
                            raise self._no_trace()
                        inside, begin = False, at - 1
                if not inside:
                    self._keep(text[begin:at])
                    begin = at
                    inside = reason == kernels.OPENED and bool(_BEGINS_EVENTS.search(self._around[-1000:]))
                    self._found |= inside
            kept = text[begin:]
            if len(kept) > LARGEST_EVENT_BYTES:
                raise self._no_trace()
        self._end(inside)

    def _keep(self, text: bytes) -> None:
        self._around += text
        if len(self._around) > LARGEST_EVENT_BYTES:
            raise self._no_trace()

    def _end(self, inside: bool) -> None:
        if not self._found:
            raise self._no_trace()
        if inside or self._state[kernels.DEPTH] > 0 or self._state[kernels.IN_STRING]:
            raise DocumentError(f"{self._path} is cut off: record it again, or copy it whole.")
        try:
            self.about = msgspec.json.decode(_as_json(bytes(self._around)), type=self._about)
        except (msgspec.DecodeError, RecursionError):
            raise self._no_trace() from None

    def _decoded(self, text: bytes) -> list[Event]:
        whole = b"[" + text.strip(b" \t\r\n,") + b"]"
        try:
            return self._events.decode(whole)
        except (msgspec.DecodeError, UnicodeDecodeError):
            pass
        try:
            return self._events.decode(_as_json(whole))
        except (msgspec.DecodeError, RecursionError) as error:
            raise SourceError(
                f"{self._path} has events that cannot be read ({error}): it is damaged, or not {self._meant}."
            ) from None

    def _no_trace(self) -> DocumentError:
        return SourceError(f"{self._path} is not {self._meant}: it has no list of events.")


def _as_json(text: bytes) -> bytes:
    """Return the text without what JSON does not allow: `NaN`, infinities, and bytes that are not characters."""
    return _NO_NUMBER.sub(rb"\1null", text.decode(errors="replace").encode())
