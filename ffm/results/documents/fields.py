"""What the fields of documents may hold.

Times are seconds in documents, which people read, and nanoseconds in the columnar files next to them.
"""

from __future__ import annotations

from typing import Annotated

import msgspec

Seconds = Annotated[float, msgspec.Meta(ge=0, le=1e9)]

ByteTime = Annotated[float, msgspec.Meta(ge=0, le=1e9)]
"""Nanoseconds for each byte."""

Share = Annotated[float, msgspec.Meta(ge=0, le=1)]

Count = Annotated[int, msgspec.Meta(ge=0, le=1 << 60)]

Number = Annotated[int, msgspec.Meta(ge=0, le=0x7FFFFFFF)]
"""An index into a list of the same document, from 0; or a line, from 1."""

TableFile = Annotated[str, msgspec.Meta(pattern=r"\A[A-Za-z0-9][A-Za-z0-9_-]*\.arrow\Z")]
"""A file next to the document, in no other folder."""

Argument = Annotated[str, msgspec.Meta(pattern=r"\A[^\x00]*\Z")]
"""What can be passed to a program."""


def one_of(*texts: str) -> msgspec.Meta:
    """Restrict a text to a few values."""
    return msgspec.Meta(pattern=rf"\A({'|'.join(texts)})\Z")


class Record(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Base of everything inside a document: immutable, keyword only, no unknown fields.

    msgspec does not inherit `kw_only`, so each subclass repeats it.
    """
