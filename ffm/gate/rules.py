"""What a project allows: the configuration of the gate, as typed in `ffm.toml` or below `[tool.ffm]`."""

from __future__ import annotations

from fnmatch import fnmatchcase
from pathlib import PurePath
from typing import Annotated

import msgspec

from ffm.gate.problems import CallSite
from ffm.results.documents.fields import Count, Number, Record

Text = Annotated[str, msgspec.Meta(min_length=1)]
"""A name, or a pattern with `*`, `?` and `[...]`."""
Limit = Annotated[float, msgspec.Meta(ge=0, le=1e9)]


class Allowed(Record, frozen=True, kw_only=True):
    """Calls that are allowed although they have a problem. All keys that are given must match."""

    reason: Text
    call: Text | None = None
    """The runtime's or the driver's function: `cudaFree`, `cuMemFree*`."""
    function: Text | None = None
    """The function that makes the call, with or without template arguments and parameters."""
    file: Text | None = None
    """Its file: a name, or the last parts of a path."""
    line: Annotated[int, msgspec.Meta(ge=1)] | None = None
    """Its line in that file."""
    stack: Annotated[list[Text], msgspec.Meta(min_length=1)] | None = None
    """Functions, files or libraries on the call stack, innermost first; others may stand between them."""
    count: Count | None = None
    """How many calls are allowed on each thread, over all sites that match; any number if it is not given."""
    count_per_iteration: Count | None = None
    """The same for each iteration."""

    def __post_init__(self) -> None:
        if all(key is None for key in (self.call, self.function, self.file, self.stack)):
            raise ValueError("it names no calls: give `call`, `function`, `file` or `stack`")
        if self.line is not None and self.file is None:
            raise ValueError("it names a `line`, but no `file`")

    def matches(self, site: CallSite) -> bool:
        """Return whether a site is meant."""
        return (
            (self.call is None or any(fnmatchcase(name, self.call) for name in site.calls))
            and (self.function is None or any(fnmatchcase(name, self.function) for name in site.callers))
            and (self.file is None or any(self._is_place(file, line) for file, line in site.places))
            and (self.stack is None or _in_order(self.stack, site.frames))
        )

    def _is_place(self, file: str, line: int) -> bool:
        assert self.file is not None
        return bool(file) and PurePath(file).match(self.file) and self.line in (None, line)

    def __str__(self) -> str:
        keys = {name: getattr(self, name) for name in ("call", "function", "file", "line", "stack")}
        return ", ".join(
            f"{name} {' < '.join(value) if isinstance(value, list) else value}"
            for name, value in keys.items()
            if value is not None
        )


class Limits(Record, frozen=True, kw_only=True):
    """How much of what is neither allowed nor in the baseline is tolerated. Without any limit, nothing is."""

    unnecessary_seconds: Limit | None = None
    """What fixing all of it together would save."""
    unnecessary_percent: Annotated[float, msgspec.Meta(ge=0, le=100)] | None = None
    """The same in percent of the run."""
    new_sites: Number | None = None
    """Call sites."""
    waits_per_iteration: Number | None = None
    """Calls that wait in any iteration of any thread, whether or not they are allowed or needed."""

    @property
    def none(self) -> bool:
        """Whether no limit is given."""
        return self == Limits()


class Rules(Record, frozen=True, kw_only=True):
    """The whole configuration."""

    allow: list[Allowed] = msgspec.field(default_factory=list)
    limits: Limits = Limits()
    baseline: Text = "ffm-baseline.json"
    """Where `ffm check --update` stores what is known; relative to the folder of the configuration."""
    iterations: Text | None = None
    """Where iterations begin: `auto`, a function, or a file and its line."""

    @property
    def counts_iterations(self) -> bool:
        """Whether anything is allowed by the iteration."""
        by_iteration = any(entry.count_per_iteration is not None for entry in self.allow)
        return by_iteration or self.limits.waits_per_iteration is not None


def _in_order(patterns: list[str], frames: tuple[tuple[str, ...], ...]) -> bool:
    """Return whether each pattern matches a name of some frame, further out than the one before it."""
    left = iter(frames)
    return all(any(any(fnmatchcase(name, pattern) for name in names) for names in left) for pattern in patterns)
