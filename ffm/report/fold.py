"""One fold, expanded by the functions that make its calls (dissertation, Figure 5.3 right)."""

from __future__ import annotations

import difflib
from dataclasses import dataclass, replace

from ffm.errors import FfmError
from ffm.report.findings import Finding, findings, kept, site_saving
from ffm.report.numbers import Estimator, Saving, Scale
from ffm.results.documents.analysis import Analysis, Group
from ffm.results.places import Place, place, reached_from


@dataclass(frozen=True, slots=True)
class FoldSite:
    """A site inside a fold, with its findings."""

    where: Place
    reached: str
    """` from solver.cu:57` if another site of the fold has the same place; else empty."""
    count: int
    saving: Saving
    findings: list[Finding]


@dataclass(frozen=True, slots=True)
class Part:
    """A function that makes calls of the fold; its name has no template arguments."""

    name: str
    count: int
    saving: Saving
    conditional: bool
    sites: list[FoldSite]
    parts: list[Part]


@dataclass(frozen=True, slots=True)
class FoldView:
    """Everything on the screen of `ffm fold`. `keep` lists synchronizations that must stay.

    `hidden` counts the sites left out of the parts because they save less than 0.1 % of the run. `results` is the
    option that names these results, as the user gave it, or empty.
    """

    application: str
    wall_s: float
    estimator: Estimator
    name: str
    count: int
    saving: Saving
    conditional: bool
    parts: list[Part]
    hidden: int
    keep: list[Place]
    results: str


def fold(
    analysis: Analysis, name: str, estimator: Estimator = "carry", *, show_all: bool = False, results: str = ""
) -> FoldView:
    """Lay out the fold with a name; the parts and sites that save most come first.

    Raises:
        FfmError: No such fold exists; the message suggests similar names.
    """
    group = find_fold(analysis, name)
    scale = Scale(analysis.wall_s)
    saving = scale.saving(group.benefit)
    parts = _parts(analysis, group.parts or [group], estimator, reached_from(analysis, group.sites))
    shown = parts if show_all else _above(parts, scale, estimator)
    return FoldView(
        application=analysis.application,
        wall_s=analysis.wall_s,
        estimator=estimator,
        name=group.name,
        count=group.count,
        saving=saving,
        conditional=group.conditional,
        parts=shown,
        hidden=_number_of_sites(parts) - _number_of_sites(shown),
        keep=kept(analysis, group.sites),
        results=results,
    )


def find_fold(analysis: Analysis, name: str) -> Group:
    """Return the fold with a name: an exact match, or else the only one that differs just in case.

    Raises:
        FfmError: There is none.
    """
    folds = {group.name: group for group in analysis.folds}
    if name in folds:
        return folds[name]
    same = [known for known in folds if known.casefold() == name.casefold()]
    if len(same) == 1:
        return folds[same[0]]
    raise FfmError(_unknown(analysis.application, name, list(folds)))


def _unknown(application: str, name: str, known: list[str]) -> str:
    if not known:
        return f"{application} has no fold: no unnecessary synchronization or transfer was found."
    lowered = {candidate.casefold(): candidate for candidate in known}
    close = [lowered[match] for match in difflib.get_close_matches(name.casefold(), lowered, n=3, cutoff=0.5)]
    close += [other for other in known if name.casefold() in other.casefold() and other not in close][:3]
    if close:
        return f"{application} has no fold {name}; did you mean {' or '.join(close)}?"
    return f"{application} has no fold {name}; its folds are {', '.join(known)}."


def _parts(analysis: Analysis, groups: list[Group], estimator: Estimator, apart: dict[int, str]) -> list[Part]:
    scale = Scale(analysis.wall_s)

    def part(group: Group) -> Part:
        sites = [
            FoldSite(
                place(analysis, index),
                apart.get(index, ""),
                analysis.sites[index].count,
                site_saving(analysis, index),
                findings(analysis, index),
            )
            for index in (() if group.parts else group.sites)
        ]
        return Part(
            name=group.name,
            count=group.count,
            saving=scale.saving(group.benefit),
            conditional=group.conditional,
            sites=sorted(sites, key=lambda site: -site.saving.seconds(estimator)),
            parts=_parts(analysis, group.parts, estimator, apart),
        )

    return sorted(map(part, groups), key=lambda made: -made.saving.seconds(estimator))


def _above(parts: list[Part], scale: Scale, estimator: Estimator) -> list[Part]:
    """Return the parts without the rows that save too little to be shown; a part stays above what is shown of it."""
    cut = [
        replace(
            part,
            sites=[site for site in part.sites if scale.shows(site.saving, estimator)],
            parts=_above(part.parts, scale, estimator),
        )
        for part in parts
    ]
    return [part for part in cut if part.sites or part.parts or scale.shows(part.saving, estimator)]


def _number_of_sites(parts: list[Part]) -> int:
    return sum(len(part.sites) + _number_of_sites(part.parts) for part in parts)
