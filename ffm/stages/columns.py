"""What the columns of a table must fulfil, and the check that they do.

Kernels and array operations index by what stands in a table. So each table is described once, beside its writer, and
checked once, when it is read: a few passes over each column.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

Columns = dict[str, NDArray[Any]]
"""Columns of equal length by name."""

LONGEST = 1 << 60
"""Nanoseconds that a time may be (36 years), and bytes that a size may be: sums of a few of them fit 64 bits."""

MANY = 1 << 20
"""More processes, or threads of a process, are in no run. With as many stacks, one of each fits 64 bits together."""


class ColumnError(ValueError):
    """A column does not fulfil what its table promises; the message says which, and what."""


@dataclass(frozen=True, slots=True)
class Column:
    """Values of one type, from `least` to `most`, where these are given; both included."""

    type: type[np.generic]
    least: float | None = None
    most: float | None = None
    below: str = ""
    """What the values count, from 0, where they refer to something: they lie below how many of it there are."""
    among: Callable[[], Collection[int]] | None = None
    """Gives the values that there may be, where they are a few numbers with meanings."""
    adds_up: bool = False
    """Whether the sum of all values must fit 64 bits, too."""


@dataclass(frozen=True, slots=True)
class Table:
    """A kind of table: its columns, and what these must fulfil together.

    Each rule is a phrase that completes "the table says that ...", and tells whether the columns keep to it.
    """

    columns: Mapping[str, Column]
    rules: Mapping[str, Callable[[Columns], bool]] = field(default_factory=dict)

    def check(self, columns: Columns, counts: Mapping[str, int]) -> None:
        """Check that columns are such a table; `counts` says how many there are of what columns refer to.

        `rows`, the table's own, need not be given.

        Raises:
            ColumnError: a column is missing, too many, of another type, or holds what it must not.
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
    """A column that refers to something by its number from 0; with `none`, -1 refers to nothing."""
    return Column(kind, least=-1 if none else 0, below=to)


def time() -> Column:
    """A point in time, or how long something took, in nanoseconds."""
    return Column(np.int64, least=0, most=LONGEST)


def duration(*, least: int = 0) -> Column:
    """Nanoseconds that something took, of which all are added up; -1 as `least` stands for nothing."""
    return Column(np.int64, least=least, most=LONGEST, adds_up=True)


def identity() -> dict[str, Column]:
    """The columns that name an operation in any run (`ffm.stages.matching`)."""
    return {
        "process": Column(np.int32, least=0, most=MANY),
        "thread": Column(np.int32, least=0, most=MANY),
        "stack": number_of("stacks"),
        "occurrence": Column(np.int64, least=0, most=LONGEST),
    }


def size() -> Column:
    """Bytes, or how often something was done, of which all are added up."""
    return Column(np.int64, least=0, most=LONGEST, adds_up=True)


def _check_column(name: str, column: Column, values: NDArray[Any], counts: Mapping[str, int]) -> None:
    if values.dtype != np.dtype(column.type):
        raise ColumnError(f"its column {name} holds {values.dtype}, not {np.dtype(column.type)}")
    if not len(values):
        return
    least, most = values.min(), values.max()
    if least != least:  # NaN spreads to the least value
        raise ColumnError(f"its column {name} holds what is no number")
    if column.least is not None and least < column.least:
        raise ColumnError(f"its column {name} holds {least}, below {column.least}")
    if column.most is not None and most > column.most:
        raise ColumnError(f"its column {name} holds {most}, above {column.most}")
    if column.below and most >= counts[column.below]:
        raise ColumnError(f"its column {name} refers to number {most} of {counts[column.below]} {column.below}")
    if column.among is not None:
        known = np.isin(values, np.fromiter(column.among(), np.int64))
        if not known.all():
            raise ColumnError(f"its column {name} holds {values[np.argmin(known)]}, which stands for nothing")
    if column.adds_up and values.sum(dtype=np.float64) > np.iinfo(np.int64).max / 2:
        raise ColumnError(f"its column {name} adds up to more than can be")
