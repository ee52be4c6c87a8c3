"""Waits of Python code that come again and again: needed as the code is written, but often avoidable."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from ffm.report.frameworks import PYTHON, framework_named, framework_of_site, in_copy, in_their_words, package_call
from ffm.report.kept.kept_waits import KeptWaits
from ffm.results.documents.analysis import Analysis

FETCHING = (
    "The program needs them the way it is written. What it does with the values is not known. If an `if` or `while` "
    "depends on a value, it is needed in each iteration. If values are only summed up, averaged, logged or plotted, "
    "they can stay on the GPU until they are read together."
)
FETCHING_SAVES = (
    "Reading in every k-th iteration leaves about one in k of these waits. A saving counts all waits for the same "
    "values, including those in calls before the one that is named, whose own screen counts only its own. These "
    "savings are not in the lists of problems, and do not add up. What the GPU does instead, such as summing up, is "
    "not subtracted."
)
SENDING = (
    "The program needs these waits the way it is written: afterwards, something writes to the memory that the copy "
    "reads. If that memory stays unchanged until the copy is over, the copy need not wait."
)
SENDING_SAVES = (
    "A saving counts these waits together with those for other uploads before them, which cover each other. It is not "
    "in the lists of problems, and does not add up. Pinning, if it is new, costs time that is not subtracted."
)


@dataclass(frozen=True, slots=True)
class FetchingWaits(KeptWaits):
    """A site that waits for values that the CPU uses."""

    watched: bool = True
    """Whether the CPU was seen to use them."""
    package: str = ""
    """The package that fetches them; empty if it is not known."""
    function: str = ""
    """The Python function of a package that the program calls; empty if there is none."""

    def what(self) -> str:
        """Return what the calls do."""
        used = "what the CPU then uses" if self.watched else "values whose use could not be watched"
        return f"wait in {self.function} for {used}" if self.function else f"wait for {used}"


@dataclass(frozen=True, slots=True)
class SendingWaits(KeptWaits):
    """A site that waits for uploads whose source is then written."""

    pageable: bool = False
    """Whether some of them upload from pageable memory."""
    package: str = ""
    """The package that uploads; empty if it is not known."""

    def what(self) -> str:
        """Return what the calls do."""
        return f"wait for an upload from {'pageable' if self.pageable else 'pinned'} memory"


def fetching_waits(analysis: Analysis) -> list[FetchingWaits]:
    """Return the sites at which Python code fetches values more than once, largest saving first.

    Where their use could not be watched, only a copy of the package is known to fetch any.
    """
    sites = analysis.sites
    return [
        FetchingWaits.of_site(
            analysis,
            wait,
            watched=wait.watched,
            package=_package(analysis, wait.site),
            function=_function(analysis, wait.site),
        )
        for wait in analysis.fetching
        if wait.watched or in_copy(analysis, sites[wait.site])
    ]


def sending_waits(analysis: Analysis) -> list[SendingWaits]:
    """Return the sites at which a copy of a Python package waits for uploads more than once, largest saving first.

    A wait that the script itself asks for is no part of the copy: there it is not known what else it is for.
    """
    sites = analysis.sites
    return [
        SendingWaits.of_site(analysis, wait, pageable=wait.pageable, package=_package(analysis, wait.site))
        for wait in analysis.sending
        if sites[wait.site].kind == "transfer" or in_copy(analysis, sites[wait.site])
    ]


def _package(analysis: Analysis, site: int) -> str:
    return (framework_of_site(analysis, analysis.sites[site]) or PYTHON).name


def _function(analysis: Analysis, site: int) -> str:
    called = package_call(analysis, analysis.sites[site])
    return "" if called is None else called.function


def fetching_advice(waits: Sequence[FetchingWaits]) -> str:
    """Return what to do about sites that fetch, in the words of the packages."""
    steps = in_their_words((framework_named(wait.package) for wait in waits), lambda framework: framework.kept_there)
    return " ".join((FETCHING, *steps, FETCHING_SAVES))


def sending_advice(waits: Sequence[SendingWaits]) -> str:
    """Return what to do about sites that upload, in the words of the packages."""
    steps = in_their_words((framework_named(wait.package) for wait in waits), lambda framework: framework.sent_ahead)
    return " ".join((SENDING, *steps, SENDING_SAVES))
