"""Whether a corrected program ends and writes as the original does."""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field

from ffm.remedy.correct import ProgramRun
from ffm.report.numbers import plural

OFTEN = 0.1
"""If a number varies in at least this share of the lines that are alike, it may be the same in all runs of one of them
by chance.
"""

SELDOM = 2
"""Likewise if in so many of them, one run differs from all others."""

_NUMBER = re.compile(rb"[-+]?(?:\d+(?:\.\d+)?(?:[eE][-+]?\d+)?|\b(?:nan|inf)\b)")


def compare_outputs(bare: Sequence[ProgramRun], corrected: Sequence[ProgramRun]) -> tuple[list[str], list[str]]:
    """Compare how the runs ended and what they wrote; return (differences, notes).

    Lines that differ between runs of the uncorrected program, such as times, are excluded from the comparison. So are
    those that could: lines that are alike but for numbers, in a number that often differs, by no more than it does. A
    note names the first of these, and their number.
    """
    differences, notes = [], []
    endings = {str(run.ending) for run in bare}
    for run in corrected:
        if str(run.ending) not in endings:
            differences.append(f"The program {' or '.join(sorted(endings))}; corrected, it {run.ending}.")
            break
    texts = [run.output.splitlines() for run in bare]
    if len({len(lines) for lines in texts}) > 1:
        notes.append("The length of the output differs from run to run: it was not compared.")
    else:
        stable = [len(set(versions)) == 1 for versions in zip(*texts, strict=True)]
        if not all(stable):
            notes.append(f"{stable.count(False)} lines of the output differ from run to run and were not compared.")
        alike = _Alike(texts)
        excused: set[int] = set()
        for run in corrected:
            difference, alike_lines = _first_difference(texts[0], run.output.splitlines(), stable, alike)
            excused.update(alike_lines)
            if difference:
                differences.append(difference)
                break
        if excused:
            notes.append(_told_of(sorted(excused)))
    for name in bare[0].files:
        digests = {run.files[name] for run in bare}
        if None in digests:
            differences.append(f"The program does not write {name}, so it cannot be compared.")
        elif len(digests) > 1:
            notes.append(f"{name} differs from run to run: it was not compared.")
        elif any(run.files[name] is None for run in corrected):
            differences.append(f"The corrected program did not write {name}.")
        elif {run.files[name] for run in corrected} != digests:
            differences.append(f"The corrected program wrote a different {name}.")
    return differences, notes


def _told_of(excused: list[int]) -> str:
    """Return which lines differ, but count as the same."""
    others = f" and {plural(len(excused) - 1, 'other line')}" if len(excused) > 1 else ""
    return (
        f"Line {excused[0]} of the corrected output{others} differ{'' if others else 's'} only in numbers that vary as "
        "much in similar lines from run to run: this counts as the same."
    )


def _first_difference(
    expected: list[bytes], actual: list[bytes], stable: list[bool], alike: _Alike
) -> tuple[str, list[int]]:
    """Return what differs first, and the numbers of the lines before it that differ as lines like them do."""
    excused: list[int] = []
    if len(expected) != len(actual):
        return f"The program writes {len(expected)} lines; corrected, it wrote {len(actual)}.", excused
    for number, (line, other, compared) in enumerate(zip(expected, actual, stable, strict=True), 1):
        if not compared or line == other:
            continue
        if not alike.may_vary(line, other):
            difference = (
                f"Line {number} of the output is {line.decode(errors='replace')!r}; the corrected program wrote "
                f"{other.decode(errors='replace')!r}."
            )
            return difference, excused
        excused.append(number)
    return "", excused


@dataclass(slots=True)
class _Number:
    """What one number of lines that are alike was in runs of the same program."""

    varies: int = 0
    """In how many of the lines it differs between runs."""
    seldom: int = 0
    """In how many of those one run differs from all others, which are at least two."""
    least: float = float("inf")
    most: float = float("-inf")
    """What it was in those, if it was finite."""
    not_finite: set[bytes] = field(default_factory=set)
    """How it was written in those otherwise."""

    def add(self, told: Sequence[bytes]) -> None:
        """Add a line in which it differs, as it was written in each run."""
        values = [value for value in map(float, told) if math.isfinite(value)]
        self.varies += 1
        self.seldom += max(Counter(told).values()) == len(told) - 1 > 1
        self.least, self.most = min([self.least, *values]), max([self.most, *values])
        self.not_finite.update(one for one in told if not math.isfinite(float(one)))

    def may_vary(self, lines: int) -> bool:
        """Return whether it may vary in any of so many lines, although it did not in all."""
        return self.varies >= OFTEN * lines or self.seldom >= SELDOM

    def has_been(self, told: bytes) -> bool:
        """Return whether it was as small and as large as what is written there."""
        value = float(told)
        return self.least <= value <= self.most if math.isfinite(value) else told in self.not_finite


class _Alike:
    """Lines of a program's output that are the same but for numbers."""

    def __init__(self, texts: Sequence[Sequence[bytes]]) -> None:
        """Take what the program wrote in several runs, each in equally many lines."""
        self._texts = texts
        self._found: dict[bytes, tuple[list[_Number], int]] = {}

    def may_vary(self, line: bytes, other: bytes) -> bool:
        """Return whether two lines differ only in numbers that differ as much in lines like them from run to run."""
        if _form(line) != _form(other):
            return False
        if not self._found:
            self._learn()
        numbers, lines = self._found[_form(line)]
        pairs = zip(numbers, _numbers(line), _numbers(other), strict=True)
        return all(number.may_vary(lines) and number.has_been(new) for number, old, new in pairs if old != new)

    def _learn(self) -> None:
        for versions in zip(*self._texts, strict=True):
            form = _form(versions[0])
            numbers, lines = self._found.get(form, ([_Number() for _ in _numbers(versions[0])], 0))
            self._found[form] = numbers, lines + 1
            if len(set(versions)) == 1 or any(_form(version) != form for version in versions):
                continue
            for number, told in zip(numbers, zip(*map(_numbers, versions), strict=True), strict=True):
                if len(set(told)) > 1:
                    number.add(told)


def _form(line: bytes) -> bytes:
    return _NUMBER.sub(b"#", line)


def _numbers(line: bytes) -> list[bytes]:
    return _NUMBER.findall(line)
