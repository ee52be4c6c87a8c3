"""What all documents have in common: the typed, versioned files that pass between stages and to the report.

A document names its columnar files relative to its own folder.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import ClassVar, TypeVar

import msgspec

from ffm.results.documents.fields import Record
from ffm.results.documents.run import Run
from ffm.results.documents.stacks import Module, Stack

FORMAT_VERSION = 14
"""Of what the measuring stages write; incremented when a field changes its meaning. Readers refuse other versions."""

Reference = tuple[str, Iterable[int], int]
"""What refers to what, in words; the numbers; and how many targets there are, from 0."""


class Document(Record, frozen=True, kw_only=True):
    """A file of results. Subclasses set `format`; `version` must be the `written` one on reading.

    `tables` lists the fields that name columnar files, which are next to the document. `checksums` are those of these
    files, by field, as determined by `write_document`.
    """

    format: ClassVar[str]
    written: ClassVar[int] = FORMAT_VERSION
    tables: ClassVar[tuple[str, ...]] = ()
    version: int = written
    runs: dict[str, str] = msgspec.field(default_factory=dict)
    """Identity, by stage, of the run that the document describes and of those that it was built on
    (`ffm.results.folder.identity`).
    """
    run: Run | None = None
    modules: list[Module] = msgspec.field(default_factory=list)
    stacks: list[Stack] = msgspec.field(default_factory=list)
    checksums: dict[str, str] = msgspec.field(default_factory=dict)

    def references(self) -> Iterator[Reference]:
        """Yield everything in the document that is the number of something else in it."""
        modules = {frame.module for stack in self.stacks for frame in stack.frames}
        yield "a frame names module", modules, len(self.modules)

    def check(self) -> None:
        """Check what no single field can show.

        Raises:
            ValueError: A number refers to nothing; the message says which.
        """
        for what, numbers, count in self.references():
            if (highest := max(numbers, default=-1)) >= count:
                raise ValueError(f"{what} {highest} of {count}")


DocumentType = TypeVar("DocumentType", bound=Document)
