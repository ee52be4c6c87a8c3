"""Documents as files: written whole or not at all, and checked when they are read."""

from __future__ import annotations

import shlex
from pathlib import Path
from typing import Any

import msgspec
import orjson

from ffm.errors import DocumentError, UnreadableError
from ffm.regular_file import read_regular
from ffm.results.documents.document import Document, DocumentType
from ffm.results.documents.stacks import stored_stacks, taken_stacks
from ffm.results.memory.collecting import uncollected
from ffm.results.ownership import own_secret
from ffm.results.sealing import digest_of_file, is_signed, is_whole, sealed, take_seal
from ffm.whole_file import write_whole

MOST_BYTES = 1 << 31
"""No document is larger: a million stacks of 30 frames take a tenth of it."""


@uncollected()
def write_document(document: DocumentType, path: Path, *, own: bool = False) -> DocumentType:
    """Write a document as JSON, completely or not at all, so that readers never see a partial file. Its tables must
    exist.

    `own` means that this user measured its content: it is signed, if the user has a place for the secret. Returns the
    document as it was written, with the checksums of its tables.

    Raises:
        OSError: The file cannot be written, or a table cannot be read.
    """
    checksums = {name: digest_of_file(path.with_name(getattr(document, name))) for name in document.tables}
    document = msgspec.structs.replace(document, checksums=checksums)
    content = msgspec.to_builtins(msgspec.structs.replace(document, stacks=[])) | stored_stacks(document.stacks)
    head = {"format": document.format, "version": content.pop("version")}
    encoded = sealed(head, content, own_secret(make=True) if own else None)
    write_whole(path, encoded)
    return document


def missing(path: Path, stage: str) -> DocumentError:
    """Return the error for a document of a stage that does not exist."""
    return DocumentError(f"{path} does not exist. Run `ffm stage {stage}` first.")


@uncollected()
def read_owned(kind: type[DocumentType], path: Path) -> tuple[DocumentType, bool]:
    """Read and check a document of the given kind; also return whether this user measured its content.

    Raises:
        DocumentError: It is missing, truncated, edited, of another kind or version, or has invalid content. The message
            names the file and the command that recreates it.
    """
    try:
        data = read_regular(path, MOST_BYTES)
    except FileNotFoundError:
        raise missing(path, _stage(kind)) from None
    except PermissionError as error:
        raise UnreadableError(str(path), error) from error
    except OSError as error:
        raise StoredError(f"{path} cannot be read: {error.strerror}.", kind, path.parent) from error
    content = _decoded(kind, path, data)
    seal = take_seal(content)
    if not is_whole(data, seal):
        raise edited(kind, path)
    signed = is_signed(data, seal, own_secret())
    del data  # before a second copy of its content is made
    try:
        stacks = taken_stacks(content)
        document = msgspec.structs.replace(msgspec.convert(content, kind), stacks=stacks)
        document.check()
    except (msgspec.ValidationError, ValueError, RecursionError) as error:
        raise StoredError(f"{path} is not as this ffm writes it ({error}).", kind, path.parent) from error
    return document, signed


class StoredError(DocumentError):
    """A document of some kind, or one of its tables, is damaged or lost."""

    help = "Measure again."

    def __init__(self, what: str, kind: type[Document], folder: Path) -> None:
        """Say what is wrong with a document of this kind in this folder."""
        super().__init__(what)
        self.help = _recreating(kind, folder)


class OtherVersionError(StoredError):
    """A document was written by another version of ffm. Then those of the other stages were, too."""

    def __init__(self, what: str, kind: type[Document], folder: Path) -> None:
        super().__init__(what, kind, folder)
        if kind.format != "ffm.analysis":
            self.help = "Measure the program again, with all stages: `ffm run --force ./program`."


def edited(kind: type[Document], path: Path) -> DocumentError:
    """Return the error for a document of this kind, or a table of one, that was changed since it was written."""
    return StoredError(f"{path} was edited or truncated.", kind, path.parent)


def _recreating(kind: type[Document], folder: Path) -> str:
    """Return the command that recreates a document of this kind in a folder; the one for all, if the kind is just
    `Document`.
    """
    if kind is Document:
        return "Measure again."
    if kind.format == "ffm.analysis":
        command = shlex.join(["ffm", "stage", "analysis", "--results", str(folder)])
        return f"Recreate it with `{command}`; if it came from a quick run or an import, repeat that."
    return f"Measure again with `ffm stage {_stage(kind)}` and the stages after it."


def _stage(kind: type[Document]) -> str:
    return kind.format.removeprefix("ffm.").replace("_", "-")


def _decoded(kind: type[Document], path: Path, data: bytes) -> dict[str, Any]:
    """Return the fields of a document with the right format and version. For another version, the error says
    just that.
    """
    try:
        content = orjson.loads(data)
    except orjson.JSONDecodeError:
        raise edited(kind, path) from None
    if not isinstance(content, dict) or content.pop("format", None) != kind.format:
        raise StoredError(f"{path} is not a document of the format {kind.format}.", kind, path.parent)
    if content.get("version") != kind.written:
        raise OtherVersionError(
            f"{path} has version {content.get('version')!r:.40}, but this ffm reads version {kind.written}.",
            kind,
            path.parent,
        )
    return content
