"""What the columns of a table must satisfy, and the check that they do.

Kernels and array operations use the content of tables as indices. So each table is described once, next to its writer,
and checked once, when it is read, in a few passes over each column.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ffm.errors import CauseError
from ffm.model.grouping import parts

Columns = dict[str, NDArray[Any]]
"""Columns of equal length by name."""

LONGEST = 1 << 60
"""Limit of nanoseconds in a time (36 years), and of bytes in a size: sums of a few of them fit into 64 bits."""

MANY = 1 << 20
"""No run has more processes, or threads per process. One of each, with as many stacks, fits into 64 bits together."""

MANY_CODES = 1 << 16
"""Codes further apart are told from each other by sorting."""


class ColumnError(CauseError):
    """A column violates what its table promises; the message says which column, and how."""


@dataclass(frozen=True, slots=True)
class Column:
    """Values of one type, from `least` to `most`, both included, if given."""

    type: type[np.generic]
    least: float | None = None
    most: float | None = None
    below: str = ""
    """What the values refer to, numbered from 0: they must be below the number of these."""
    among: Callable[[], Collection[int]] | None = None
    """Returns the allowed values, if they are a few numbers with meanings."""
    adds_up: bool = False
    """Whether the sum of all values must fit into 64 bits, too."""

    @property
    def takes_any(self) -> bool:
        """Whether all values of the type are allowed, so that none needs to be looked at."""
        return self == Column(self.type) and not issubclass(self.type, np.floating)


@dataclass(frozen=True, slots=True)
class Table:
    """A kind of table: its columns, and what these must satisfy together.

    Each rule is a phrase that completes "the table says that ...", and a function that checks it.
    """

    columns: Mapping[str, Column]
    rules: Mapping[str, Callable[[Columns], bool]] = field(default_factory=dict)

    def check(self, columns: Columns, counts: Mapping[str, int]) -> None:
        """Check that columns are such a table; `counts` gives the number of targets that columns refer to.

        `rows`, the table's own, need not be given.

        Raises:
            ColumnError: A column is missing, superfluous, of another type, or contains invalid values.
        """
        if missing := self.columns.keys() - columns.keys():
            raise ColumnError(f"it has no column {min(missing)}")
        if further := columns.keys() - self.columns.keys():
            raise ColumnError(f"it has a column {min(further)!r} that this ffm does not know")
        lengths = {len(column) for column in columns.values()}
        if len(lengths) > 1:
            raise ColumnError("its columns differ in length")
        counts = {"rows": lengths.pop() if lengths else 0, **counts}
        for name, column in self.columns.items():
            _check_column(name, column, columns[name], counts)
        for promise, holds in self.rules.items():
            if not holds(columns):
                raise ColumnError(f"not in every row {promise}")


def number_of(to: str, *, none: bool = False, kind: type[np.generic] = np.int32) -> Column:
    """Return a column that refers to something by its number from 0; with `none`, -1 refers to nothing."""
    return Column(kind, least=-1 if none else 0, below=to)


def time() -> Column:
    """Return a column of times, or of durations, in nanoseconds."""
    return Column(np.int64, least=0, most=LONGEST)


def duration(*, least: int = 0) -> Column:
    """Return a column of durations in nanoseconds, all of which are added up; -1 as `least` stands for nothing."""
    return Column(np.int64, least=least, most=LONGEST, adds_up=True)


def identity() -> dict[str, Column]:
    """Return the columns that identify an operation in any run (`ffm.evidence.matching.alignment`)."""
    return {
        "process": Column(np.int32, least=0, most=MANY),
        "thread": Column(np.int32, least=0, most=MANY),
        "stack": number_of("stacks"),
        "occurrence": Column(np.int64, least=0, most=LONGEST),
    }


def size() -> Column:
    """Return a column of sizes in bytes, or of counts, all of which are added up."""
    return Column(np.int64, least=0, most=LONGEST, adds_up=True)


def _check_column(name: str, column: Column, values: NDArray[Any], counts: Mapping[str, int]) -> None:
    if values.dtype != np.dtype(column.type):
        raise ColumnError(f"its column {name} holds {values.dtype}, not {np.dtype(column.type)}")
    if not len(values) or column.takes_any:
        return
    least, most = values.min(), values.max()
    if least != least:  # NaN spreads to the least value
        raise ColumnError(f"its column {name} holds something that is not a number")
    if column.least is not None and least < column.least:
        raise ColumnError(f"its column {name} holds {least}, below {column.least}")
    if column.most is not None and most > column.most:
        raise ColumnError(f"its column {name} holds {most}, above {column.most}")
    if column.below and most >= counts[column.below]:
        raise ColumnError(f"its column {name} refers to number {most} of {counts[column.below]} {column.below}")
    if column.among is not None:
        unknown = set(_distinct(values, int(least), int(most))) - set(column.among())
        if unknown:
            raise ColumnError(f"its column {name} holds {min(unknown)}, which stands for nothing")
    most_sum = np.iinfo(np.int64).max // 2
    if column.adds_up and int(most) > most_sum // len(values) and values.sum(dtype=np.float64) > most_sum:
        raise ColumnError(f"its column {name} adds up to more than is possible")


def _distinct(values: NDArray[Any], least: int, most: int) -> list[int]:
    """Return the distinct values of a column of codes, the least and greatest of which are given, ascending.

    Noting which there are takes a tenth of the time of `np.isin`.
    """
    if most - least > MANY_CODES:
        return [int(value) for value in np.unique(values)]
    there = np.zeros(most - least + 1, np.bool_)
    for part in parts(len(values)):
        there[np.subtract(values[part], least, dtype=np.int64)] = True
    return [int(value) for value in np.flatnonzero(there) + least]
