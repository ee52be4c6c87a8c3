"""The labels of the planted programs, read from the comments at the ends of their lines.

A program names its variants in its first lines, `// variants: read, never`, and in the next one, `// like: NAME`, a
program whose behaviour is the same by another call or in another place. `// needs: keys` says that the page watch gives
its labels only where there are memory protection keys (`tests.memory_keys`). A label follows a CUDA call, or is on its
own line above it:

    WAIT(last, cudaStreamSynchronize(stream)); // sync: read required, never unnecessary
    // transfer: no-op (of first)
    check(cudaMemcpyAsync(...));

`sync:` and `transfer:` start the parts, separated by a semicolon. A part lists verdicts separated by commas, each for
one or more variants, `read, write required`; without variants it applies to all. A verdict is

    required | misplaced | unnecessary | conditionally unnecessary (keep NAME)       for synchronizations
    in place                                          for one that is required and can come no later
    not judged                                        at the edges of what was measured of a run, for both
    needed (NAME) | no-op (of NAME) | repeat (of NAME) | copy (of NAME) | partial (of NAME)    for transfers
    unseen (of NAME)                                  for a repeat whose destination was not looked at

`no-op by equal bytes (of NAME)` and `repeat by equal bytes (of NAME)` are uploads from another place of the host than
those that they repeat.

`A or B` accepts either if the definitions leave it open; `A and B` are the verdicts of different occurrences of one
call. `required (undecidable)` is the only safe verdict although removing the wait does no harm: it is not proved.
`absent` is a call that the variant does not reach. NAME is the name of another WAIT, or that after another `needed`. A
line without a part must get no verdict of that kind from ffm.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path

PROGRAMS = Path(__file__).parent / "programs"

NOT_JUDGED = "not judged"
SYNCHRONIZATION_KINDS = ("conditionally unnecessary", "unnecessary", "required", "misplaced", "in place", NOT_JUDGED)
EQUAL = " by equal bytes"
"""Follows the kind of uploads that come from another place of the host than those that they repeat."""

TRANSFER_KINDS = (
    "needed",
    f"no-op{EQUAL}",
    "no-op",
    f"repeat{EQUAL}",
    "repeat",
    "unseen",
    "copy",
    "partial",
    NOT_JUDGED,
)

_VARIANTS = re.compile(r"^// variants: (.+)$", re.MULTILINE)
_LIKE = re.compile(r"^// like: (\w+)$", re.MULTILINE)
_NEEDS_KEYS = re.compile(r"^// needs: keys$", re.MULTILINE)
_WAIT = re.compile(r"\b(?:WAIT|WAIT_OR|DOWNLOAD|UPLOAD|FREE)\((\w+),")
_FUNCTION = re.compile(r"\b(cu(?:da)?[A-Z]\w*|(?:DOWNLOAD|UPLOAD)(?:_ASYNC)?|FREE)\(")
_HEADER = re.compile(r"^#include (<.+>)", re.MULTILINE)
_MARK = re.compile(r"(.*?)//\s*((?:sync|transfer):.*)$")
_VERDICT = re.compile(
    rf"(?P<kind>{'|'.join((*SYNCHRONIZATION_KINDS, *TRANSFER_KINDS, 'absent'))})"
    r"(?: \((?:(?P<relation>keep|of) )?(?P<name>\w+)\))?"
)


class LabelError(ValueError):
    """A label cannot be read; the message names file and line."""


@dataclass(frozen=True, slots=True)
class Expected:
    """One verdict of a label."""

    kind: str
    partner: str = ""
    """Name of the synchronization to keep, or of the transfer that is repeated; empty if the label names none."""
    proved: bool = True
    """Whether removing the wait must prove that the label is right."""


@dataclass(frozen=True, slots=True)
class Label:
    """What one line's call should get in one variant: any one of `alternatives`, each a set of verdicts."""

    alternatives: tuple[frozenset[Expected], ...]

    @property
    def needed(self) -> bool:
        """Whether all verdicts of all alternatives say that the operation must stay."""
        return all(
            one.kind in ("required", "misplaced", "in place", "needed", NOT_JUDGED)
            for choice in self.alternatives
            for one in choice
        )

    @property
    def open(self) -> bool:
        """Whether both "needed" and "not needed" are right."""
        return len({Label((choice,)).needed for choice in self.alternatives}) > 1

    def __str__(self) -> str:
        return " or ".join(
            " and ".join(sorted(one.kind + (f" ({one.partner})" if one.partner else "") for one in choice))
            for choice in self.alternatives
        )


@dataclass(slots=True)
class Line:
    """The labelled call of one line in one variant."""

    number: int
    name: str = ""
    """The WAIT's name, or the one that a transfer's label gives; empty for none."""
    synchronization: Label | None = None
    transfer: Label | None = None


@dataclass(frozen=True, slots=True)
class Case:
    """One variant of a planted program."""

    source: Path
    variant: str
    lines: dict[int, Line] = field(hash=False)
    like: str = ""
    """The program that states the same; empty for none."""
    needs_keys: bool = False

    @property
    def name(self) -> str:
        return f"{self.source.stem}-{self.variant}"

    def line_of(self, name: str) -> int:
        """Return the line of a named call.

        Raises:
            LabelError: No line has that name.
        """
        for line in self.lines.values():
            if line.name == name:
                return line.number
        raise LabelError(f"{self.source.name}: no call is named {name}")


def planted_cases(folder: Path = PROGRAMS) -> list[Case]:
    """All variants of all programs, by file name."""
    return [case for source in sorted(folder.glob("*.cu")) for case in cases_of(source)]


def covering(cases: Iterable[Case]) -> list[Case]:
    """Return few cases that contain every function of CUDA that programs call, every verdict that each of them gets,
    and every header of the system, which stands for a way in which memory is used.

    Programs that state what others do are not among them, nor those that need keys, which not all machines have. Each
    case chosen is the first of those that add most.
    """
    added = {case: covered(case) for case in cases if not case.like and not case.needs_keys}
    missing = frozenset[tuple[str, str]]().union(*added.values())
    chosen: list[Case] = []
    while missing:
        chosen.append(max(added, key=lambda case: len(added[case] & missing)))
        missing -= added[chosen[-1]]
    return chosen


def covered(case: Case) -> frozenset[tuple[str, str]]:
    """Return what a case tries: functions, headers, and verdicts of functions."""
    text = case.source.read_text()
    rows = text.splitlines()
    found = {("call", name) for row in rows for name in _FUNCTION.findall(row.split("//")[0])}
    found |= {("use", name) for name in _HEADER.findall(text)}
    for number, line in case.lines.items():
        for label in (line.synchronization, line.transfer):
            verdicts = {verdict.kind for choice in label.alternatives for verdict in choice} if label else set()
            found |= {(name, kind) for name in _FUNCTION.findall(rows[number - 1])[:1] for kind in verdicts}
    return frozenset(found)


def cases_of(source: Path) -> list[Case]:
    """The variants of a program.

    Raises:
        LabelError: The program names no variants, or a label cannot be read or names none of them.
    """
    text = source.read_text()
    variants = [word.strip() for line in _VARIANTS.findall(text) for word in line.split(",")]
    if not variants:
        raise LabelError(f"{source.name} names no variants")
    like = _LIKE.search(text)
    needs_keys = _NEEDS_KEYS.search(text) is not None
    cases = [Case(source, variant, {}, like[1] if like else "", needs_keys) for variant in variants]
    above = ""
    for number, row in enumerate(text.splitlines(), 1):
        mark = _MARK.match(row)
        if mark is not None and not mark[1].strip():
            above = mark[2]
            continue
        parts, above = (mark[2] if mark is not None else above), ""
        wait = _WAIT.search(row)
        if not parts:
            if wait is not None:
                raise LabelError(f"{source.name}:{number}: the wait {wait[1]} has no label")
            continue
        for part in parts.split(";"):
            sort, _, rest = part.strip().partition(":")
            kinds = {"sync": SYNCHRONIZATION_KINDS, "transfer": TRANSFER_KINDS}.get(sort)
            if kinds is None:
                raise LabelError(f"{source.name}:{number}: '{part}' begins with neither sync: nor transfer:")
            for variant, (label, name) in _by_variant(rest, variants, kinds, f"{source.name}:{number}").items():
                if label is None:
                    continue
                line = cases[variants.index(variant)].lines.setdefault(number, Line(number))
                line.name = wait[1] if wait else name
                if sort == "sync":
                    line.synchronization = label
                else:
                    line.transfer = label
    return cases


def _by_variant(
    text: str, variants: list[str], kinds: tuple[str, ...], place: str
) -> dict[str, tuple[Label | None, str]]:
    """Read `read, write required, never absent`: the label of each variant, and the name that it gives."""
    found: dict[str, tuple[Label | None, str]] = {}
    chosen: list[str] = []
    for item in (part.strip() for part in text.split(",")):
        if item in variants:
            chosen.append(item)
            continue
        first, _, rest = item.partition(" ")
        if first in variants:
            chosen.append(first)
            item = rest
        for variant in chosen or variants:
            found[variant] = _label(item, kinds, place)
        chosen = []
    if chosen or set(found) != set(variants):
        raise LabelError(f"{place}: '{text.strip()}' does not say what holds for each of {', '.join(variants)}")
    return found


def _label(text: str, kinds: tuple[str, ...], place: str) -> tuple[Label | None, str]:
    if text == "absent":
        return None, ""
    name = ""
    alternatives: list[frozenset[Expected]] = []
    for choice in text.split(" or "):
        verdicts: set[Expected] = set()
        for word in choice.split(" and "):
            read = _VERDICT.fullmatch(word.strip())
            if read is None or read["kind"] not in kinds:
                raise LabelError(f"{place}: '{word}' is not one of {', '.join(kinds)}")
            undecidable = read["name"] == "undecidable"
            if read["name"] and not read["relation"] and not undecidable:
                name = read["name"]
            verdicts.add(Expected(read["kind"], read["name"] if read["relation"] else "", not undecidable))
        alternatives.append(frozenset(verdicts))
    return Label(tuple(alternatives)), name
