"""What a project had when it introduced the gate: a file to commit, so that only new findings stand out."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from pathlib import Path, PurePath
from typing import Annotated

import msgspec
import orjson

from ffm.errors import DocumentError, UnreadableError
from ffm.gate.problems import UNPROVED, CallSite, Identity
from ffm.regular_file import read_regular
from ffm.results.documents.fields import Number, Record
from ffm.whole_file import named_output

FORMAT = "ffm.gate-baseline"
VERSION = 2
MOST_BYTES = 1 << 28


class BaselineError(DocumentError):
    """A baseline is of another version, or damaged."""

    help = "Store it again with `ffm check --update`."


class KnownSites(Record, frozen=True, kw_only=True):
    """Sites with the same identity."""

    call: str
    problems: list[str]
    functions: list[str]
    sites: Annotated[int, msgspec.Meta(ge=1, le=0x7FFFFFFF)]
    """How many there are."""
    lines: dict[str, Number] = msgspec.field(default_factory=dict)
    """Their lines, as `solver.cu:57`, and how many sites each has: for readers, and to tell which of them is new."""

    @property
    def identity(self) -> Identity:
        """What they are recognized by."""
        return Identity(self.call, tuple(self.problems), tuple(self.functions))


def known_sites(sites: Iterable[CallSite]) -> list[KnownSites]:
    """Return what a baseline says about some sites, in an order that does not depend on theirs."""
    groups: dict[Identity, list[CallSite]] = {}
    for site in sites:
        groups.setdefault(site.identity, []).append(site)
    return [
        KnownSites(
            call=identity.call,
            problems=list(identity.problems),
            functions=list(identity.functions),
            sites=len(group),
            lines=dict(sorted(Counter(filter(None, map(_line, group))).items())),
        )
        for identity, group in sorted(
            groups.items(), key=lambda item: (item[0].call, item[0].functions, item[0].problems)
        )
    ]


def new_sites(sites: Iterable[CallSite], known: Iterable[KnownSites]) -> tuple[list[CallSite], int]:
    """Return the sites that a baseline does not know, and how many of those that it knows are gone.

    If there are more of one identity than it knows, those at other lines are the new ones.
    """
    left = {one.identity: one for one in known}
    groups: dict[Identity, list[CallSite]] = {}
    for site in sites:
        groups.setdefault(site.identity, []).append(site)
    new: list[CallSite] = []
    gone = sum(one.sites for identity, one in left.items() if identity not in groups)
    for identity, group in groups.items():
        had = left.get(identity)
        if had is None:
            new += group
            continue
        lines, same, others = dict(had.lines), [], []
        for site in group:
            if lines.get(_line(site), 0):
                lines[_line(site)] -= 1
                same.append(site)
            else:
                others.append(site)
        new += [*same, *others][had.sites :]
        gone += max(had.sites - len(group), 0)
    return new, gone


def of_kind(known: Iterable[KnownSites], *, proved: bool) -> list[KnownSites]:
    """Return what a baseline says of sites that are proved to be problems; or else of those that wait in one trace."""
    return [one for one in known if (UNPROVED in one.problems) != proved]


def write_baseline(path: Path, sites: Iterable[CallSite], others: Iterable[KnownSites] = ()) -> None:
    """Store the baseline, completely or not at all; `others` is what it says besides the sites.

    Raises:
        OSError: It cannot be written.
    """
    content = {"format": FORMAT, "version": VERSION, "known": msgspec.to_builtins([*known_sites(sites), *others])}
    with named_output(path) as file:
        file.write(orjson.dumps(content, option=orjson.OPT_INDENT_2 | orjson.OPT_APPEND_NEWLINE))


def read_baseline(path: Path) -> list[KnownSites] | None:
    """Read a baseline; None if there is none.

    Raises:
        DocumentError: It is of another version, or damaged.
    """
    try:
        content = orjson.loads(read_regular(path, MOST_BYTES))
    except FileNotFoundError:
        return None
    except OSError as error:
        raise UnreadableError(f"the baseline {path}", error) from error
    except orjson.JSONDecodeError as error:
        raise BaselineError(f"the baseline {path} is not JSON ({error}).") from error
    if not isinstance(content, dict) or content.get("format") != FORMAT:
        raise BaselineError(f"{path} is not a baseline of `ffm check`.")
    if content.get("version") != VERSION:
        raise BaselineError(
            f"the baseline {path} has version {content.get('version')!r:.40}, but this ffm reads version {VERSION}."
        )
    try:
        return msgspec.convert(content.get("known"), list[KnownSites])
    except msgspec.ValidationError as error:
        raise BaselineError(f"the baseline {path} is not as this ffm writes it ({error}).") from error


def _line(site: CallSite) -> str:
    file, line = site.places[0]
    return f"{PurePath(file).name}:{line}" if file and line else ""
