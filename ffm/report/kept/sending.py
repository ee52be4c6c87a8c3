"""Uploads for which Python code waits again and again, for the screens: needed as written, often avoidable."""

from __future__ import annotations

from dataclasses import dataclass, replace

from ffm.report.frameworks import PYTHON, Framework, framework_of_site, in_copy, in_their_words
from ffm.report.kept.kept_waits import KeptWaits
from ffm.report.numbers import Scale
from ffm.results.documents.analysis import Analysis

HEADING = "Uploads that the CPU waits for again and again"
SHOWN = (
    "The program needs these waits the way it is written: afterwards, something writes to the memory that the copy "
    "reads. If that memory stays unchanged until the copy is over, the copy need not wait."
)
SAVED = (
    "A saving counts these waits together with those for other uploads before them, which cover each other. It is not "
    "in the lists of problems, and does not add up. Pinning, if it is new, costs time that is not subtracted."
)


@dataclass(frozen=True, slots=True)
class SendingWaits(KeptWaits):
    """A site that waits for uploads whose source is then written."""

    pageable: bool = False
    """Whether some of them upload from pageable memory."""
    framework: Framework = PYTHON
    """The package that uploads."""

    def sentence(self, scale: Scale) -> str:
        """Return it in a sentence."""
        memory = "pageable" if self.pageable else "pinned"
        return self.sentence_saying(scale, f"wait for an upload from {memory} memory")


def sending_waits(analysis: Analysis) -> list[SendingWaits]:
    """Return the sites at which a copy of a Python package waits for uploads more than once, largest saving first.

    A wait that the script itself asks for is no part of the copy: there it is not known what else it is for.
    """
    sites = analysis.sites
    return [
        replace(
            SendingWaits.told(analysis, wait, pageable=wait.pageable),
            framework=framework_of_site(analysis, sites[wait.site]) or PYTHON,
        )
        for wait in analysis.sending
        if sites[wait.site].kind == "transfer" or in_copy(analysis, sites[wait.site])
    ]


def advice(waits: list[SendingWaits]) -> str:
    """Return what to do about such sites, in the words of the packages that upload."""
    steps = in_their_words((wait.framework for wait in waits), lambda framework: framework.sent_ahead)
    return " ".join((SHOWN, *steps, SAVED))
