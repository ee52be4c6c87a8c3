"""Values that Python code fetches from the GPU again and again, for the screens: needed as written, often avoidable."""

from __future__ import annotations

from dataclasses import dataclass, replace

from ffm.report.frameworks import PYTHON, Framework, framework_of_site, in_copy, in_their_words, package_function
from ffm.report.kept.kept_waits import KeptWaits
from ffm.report.numbers import Scale
from ffm.results.documents.analysis import Analysis

HEADING = "Values that the CPU fetches again and again"
SHOWN = (
    "The program needs them the way it is written. What it does with the values is not known. If an `if` or `while` "
    "depends on a value, it is needed in each iteration. If values are only summed up, averaged, logged or plotted, "
    "they can stay on the GPU until they are read together."
)
SAVED = (
    "Reading in every k-th iteration leaves about one in k of these waits. A saving counts all waits for the same "
    "values, including those in calls before the one that is named, whose own screen counts only its own. These "
    "savings are not in the lists of problems, and do not add up. What the GPU does instead, such as summing up, is "
    "not subtracted."
)


@dataclass(frozen=True, slots=True)
class FetchingWaits(KeptWaits):
    """A site that waits for values that the CPU uses."""

    watched: bool = True
    """Whether the CPU was seen to use them."""
    framework: Framework = PYTHON
    """The package that fetches them."""
    function: str = ""
    """The Python function of that package that the program calls; empty if there is none."""

    def sentence(self, scale: Scale) -> str:
        """Return it in a sentence."""
        used = "what the CPU then uses" if self.watched else "values whose use could not be watched"
        within = f" in {self.function}" if self.function else ""
        return self.sentence_saying(scale, f"wait{within} for {used}")


def fetching_waits(analysis: Analysis) -> list[FetchingWaits]:
    """Return the sites at which Python code fetches values more than once, largest saving first.

    Where their use could not be watched, only a copy of the package is known to fetch any.
    """
    return [
        replace(
            FetchingWaits.told(analysis, wait, watched=wait.watched),
            framework=framework_of_site(analysis, analysis.sites[wait.site]) or PYTHON,
            function=package_function(analysis, analysis.sites[wait.site]),
        )
        for wait in analysis.fetching
        if wait.watched or in_copy(analysis, analysis.sites[wait.site])
    ]


def advice(waits: list[FetchingWaits]) -> str:
    """Return what to do about such sites, in the words of the packages that fetch."""
    steps = in_their_words((wait.framework for wait in waits), lambda framework: framework.kept_there)
    return " ".join((SHOWN, *steps, SAVED))
