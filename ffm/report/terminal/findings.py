"""Verdicts and conditions as sentences."""

from __future__ import annotations

from rich.console import RenderableType

from ffm.report.findings import Finding
from ffm.report.names import shorten
from ffm.report.numbers import count
from ffm.report.terminal.layout import bullet, heading
from ffm.results.places import Place


def finding_text(finding: Finding) -> str:
    """`unnecessary synchronization (50 of 50 occurrences): reason: the one inside cudaFree als.cu:994 (site 9)`."""
    text = (
        f"{finding.verdict} {finding.subject} ({count(finding.occurrences)} of {count(finding.of)} occurrences)"
        f": {finding.reason}"
    )
    if finding.keep is not None and not finding.itself:
        text += f": {finding.keep.wait}"
    if finding.first is not None:
        text += f"; first transferred by {finding.first}"
    return text


def conditions(keep: list[Place], numbered: dict[int, int]) -> list[RenderableType]:
    """List the synchronizations that must stay, if there are any.

    `numbered` maps sites to their numbers on the screen. What must stay for one operation may itself be one of the
    operations; then the whole screen cannot be fixed at once.
    """
    if not keep:
        return []
    return [
        heading("Conditions: conditionally unnecessary as long as these waits stay"),
        *(
            bullet(
                f"{where.wait}, in {shorten(where.caller or 'an unknown function', 60)}"
                + (f": operation {numbered[where.site]} above" if where.site in numbered else "")
            )
            for where in keep
        ),
    ]
