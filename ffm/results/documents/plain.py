"""Documents whose texts are harmless for a terminal (`ffm.plain_text`)."""

from __future__ import annotations

import re
from typing import Any

import msgspec

from ffm.plain_text import plain
from ffm.results.documents.document import DocumentType

_ESCAPED = re.compile(rb"\\[bfnrtu]")
"""How JSON writes control characters; letters are written as they are."""


def plain_document(document: DocumentType) -> DocumentType:
    """Return a document with all of its texts made plain: itself, nearly always."""
    # Stacks have most of their frames in common, as the same objects: a million stacks have thirty million frames.
    frames = {id(frame): frame for stack in document.stacks for frame in stack.frames}
    python = [frame for stack in document.stacks for frame in stack.python]
    texts = msgspec.structs.replace(document, stacks=[]), list(frames.values()), python
    encoded = msgspec.json.encode(texts)
    if not _ESCAPED.search(encoded) and encoded.decode().isprintable():
        return document
    return msgspec.convert(_plain(msgspec.to_builtins(document)), type(document))


def _plain(value: Any) -> Any:
    if isinstance(value, str):
        return plain(value)
    if isinstance(value, list):
        return [_plain(each) for each in value]
    if isinstance(value, dict):
        return {_plain(name): _plain(each) for name, each in value.items()}
    return value
