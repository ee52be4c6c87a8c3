"""The call sites of a limited measurement: `chosen-sites.json` in its folder, which `ffm run --sites` writes."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

import msgspec
import numpy as np
from numpy.typing import NDArray

from ffm.errors import DocumentError, FfmError, UnreadableError
from ffm.regular_file import read_regular
from ffm.results.documents.analysis import Analysis
from ffm.results.documents.fields import Record
from ffm.results.documents.stacks import StackKey
from ffm.whole_file import write_whole

CHOICE_FILE = "chosen-sites.json"
FORMAT = "ffm.chosen-sites"
MOST_BYTES = 1 << 28

_WORST = re.compile(r"worst:([1-9]\d{0,5})")
_NUMBERS = re.compile(r"[1-9]\d{0,8}(,[1-9]\d{0,8})*")


class ChosenSites(Record, frozen=True, kw_only=True):
    """The call stacks of the chosen sites, by their keys, which are the same in every run."""

    format: str = FORMAT
    stacks: Annotated[list[StackKey], msgspec.Meta(min_length=1)]


def choose(analysis: Analysis, which: str) -> ChosenSites:
    """Return the sites that a text names: `3,7` by number, or `worst:5`, those that the report lists first.

    Raises:
        FfmError: It names none, or one that does not exist.
    """
    if worst := _WORST.fullmatch(which):
        sites = [wait.site for wait in analysis.unproved[: int(worst[1])]]
    elif _NUMBERS.fullmatch(which):
        sites = [int(number) - 1 for number in which.split(",")]
    else:
        raise FfmError(f"--sites takes numbers of sites, as in 3,7, or worst:5 for the first five, not {which!r:.60}.")
    known = {wait.site for wait in analysis.unproved}
    wrong = next((site for site in sites if site not in known), None)
    if wrong is not None:
        raise FfmError(
            f"site {wrong + 1} of {analysis.application} neither waits nor transfers: see `ffm report --all` on the "
            "results of quick mode for those that do."
        )
    if not sites:
        raise FfmError(
            f"quick mode found nothing in {analysis.application} that waits or transfers. There is nothing to measure."
        )
    keys = dict.fromkeys(analysis.stacks[analysis.sites[site].stack].key for site in sites)
    return ChosenSites(stacks=list(keys))


def write_choice(chosen: ChosenSites, path: Path) -> None:
    """Write a choice, unless the file already holds the same: a younger file makes stages run again.

    Raises:
        OSError: It cannot be written.
    """
    content = msgspec.json.encode(chosen)
    if not path.is_file() or path.read_bytes() != content:
        write_whole(path, content)


def read_choice(path: Path) -> ChosenSites:
    """Read a choice.

    Raises:
        DocumentError: It is missing or damaged.
    """
    try:
        return msgspec.json.decode(read_regular(path, MOST_BYTES), type=ChosenSites)
    except OSError as error:
        raise UnreadableError(f"the chosen sites {path}", error) from error
    except (msgspec.MsgspecError, ValueError) as error:
        raise DocumentError(f"the chosen sites {path} are damaged ({error}). Choose again with --sites.") from error


def are_chosen(chosen: Sequence[str], keys: Sequence[str]) -> NDArray[np.bool_]:
    """Return whether each of some stacks is among the chosen ones, by their keys."""
    return np.isin(np.array(keys, "U32"), np.array(chosen, "U32"))
