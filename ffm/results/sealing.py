"""The seal of a document: a checksum of its content, and the signature of the user who measured it.

The checksum distinguishes an edited or truncated document from an unchanged one. The signature distinguishes results
that this user measured from those of others; it needs the user's own secret (`ffm.results.ownership`). Both cover the
bytes of the file, with zeros in their own place.
"""

from __future__ import annotations

import hashlib
import hmac
from pathlib import Path
from typing import Any

import orjson
import xxhash

CHECKSUM, SIGNATURE = "checksum", "signature"

_EMPTY = {CHECKSUM: "0" * 32, SIGNATURE: "0" * 64}

_BEGINNING = 1 << 12
"""Bytes of a file that contain the seal: only the document's format and version are before it."""


def sealed(head: dict[str, Any], content: dict[str, Any], secret: bytes | None) -> bytes:
    """Encode a document: `head` first, then its seal, then the rest. Without a secret it is not signed."""
    blank = orjson.dumps({**head, **_EMPTY, **content}, option=orjson.OPT_INDENT_2 | orjson.OPT_APPEND_NEWLINE)
    begin, rest = _split(blank)
    signature = _signature(begin, rest, secret) if secret is not None else _EMPTY[SIGNATURE]
    filled = _with(begin, SIGNATURE, _EMPTY[SIGNATURE], signature)
    return b"".join((_with(filled, CHECKSUM, _EMPTY[CHECKSUM], _checksum(begin, rest)), rest))


def take_seal(content: dict[str, Any]) -> tuple[str, str]:
    """Remove checksum and signature from a decoded document, and return them; empty if there are none."""
    checksum, signature = content.pop(CHECKSUM, ""), content.pop(SIGNATURE, "")
    return checksum if isinstance(checksum, str) else "", signature if isinstance(signature, str) else ""


def is_whole(data: bytes, seal: tuple[str, str]) -> bool:
    """Return whether the bytes of a document match its checksum."""
    return _checksum(*_blank(data, seal)) == seal[0]


def is_signed(data: bytes, seal: tuple[str, str], secret: bytes | None) -> bool:
    """Return whether these bytes were written by the owner of the secret."""
    return secret is not None and hmac.compare_digest(
        _signature(*_blank(data, seal), secret).encode(), seal[1].encode(errors="replace")
    )


def digest(content: Any) -> str:
    """Return the checksum of a table's bytes, as stored in the document that names the table."""
    return xxhash.xxh3_128_hexdigest(content)


def digest_of_file(path: Path) -> str:
    """Return the checksum of a table's file. Raises `OSError` if it cannot be read."""
    state = xxhash.xxh3_128()
    with path.open("rb") as file:
        while part := file.read(1 << 22):
            state.update(part)
    return state.hexdigest()


def _split(data: bytes) -> tuple[bytes, memoryview]:
    """Return the beginning, which has the seal, and the rest. A document can be large: only the former is copied."""
    return data[:_BEGINNING], memoryview(data)[_BEGINNING:]


def _blank(data: bytes, seal: tuple[str, str]) -> tuple[bytes, memoryview]:
    """Split a document, with zeros for the seal, which comes before anything that could look like it."""
    checksum, signature = seal
    begin, rest = _split(data)
    begin = _with(begin, CHECKSUM, checksum, _EMPTY[CHECKSUM])
    return _with(begin, SIGNATURE, signature, _EMPTY[SIGNATURE]), rest


def _with(data: bytes, name: str, old: str, new: str) -> bytes:
    before, after = (f'"{name}": "{value}"'.encode(errors="replace") for value in (old, new))
    return data.replace(before, after, 1)


def _checksum(begin: bytes, rest: memoryview) -> str:
    state = xxhash.xxh3_128(begin)
    state.update(rest)
    return state.hexdigest()


def _signature(begin: bytes, rest: memoryview, secret: bytes) -> str:
    code = hmac.new(secret, b"ffm document\0", hashlib.sha256)
    code.update(begin)
    code.update(rest)
    return code.hexdigest()
