"""What could be saved at each line of the program's own source, whatever the calls go through on their way."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import PurePath

from ffm.report.commands import command
from ffm.report.findings import site_saving
from ffm.report.numbers import Estimator, Saving, Scale
from ffm.report.unproved import why_nothing
from ffm.results.call_sites import own_frame, source_file
from ffm.results.documents.analysis import Analysis
from ffm.results.places import place
from ffm.results.stored import Results, benefits_of_sites


@dataclass(frozen=True, slots=True)
class Line:
    """A line of source, and what fixing all of its calls together saves.

    `place` is `als.cu:738`, with folders where several files have that name. If a call is reached from no known line
    of the program's own, it is the call's own place, and `line` may be 0. `calls` names what is called, and `sites` are
    the numbers of the call stacks that lead there. `problems` of all `occurrences` have a problem. `command` opens the
    site that saves most.
    """

    place: str
    file: str
    line: int
    function: str
    calls: list[str]
    sites: list[int]
    occurrences: int
    problems: int
    saving: Saving
    conditional: bool
    command: str


@dataclass(frozen=True, slots=True)
class LinesView:
    """Everything on the screen of `ffm report --by line`: the lines with problems, largest saving first.

    `hidden` counts the lines left out because they save less than 0.1 % of the run. `everything` is what fixing all
    problems together saves. `results` is the option that names these results, as the user gave it, or empty.
    """

    application: str
    wall_s: float
    estimator: Estimator
    lines: list[Line]
    hidden: int
    everything: Saving | None
    without_equal_bytes: Saving | None
    """`everything` without uploads of equal bytes that may be different data; None if there are none."""
    nothing: str
    """Why there are no lines, if there are none."""
    results: str


@dataclass(frozen=True, slots=True)
class _Origin:
    """A place in the source; sites with equal ones are one line. `otherwise` names it if the line is unknown."""

    file: str
    line: int
    otherwise: str


def lines(opened: Results, estimator: Estimator = "carry", *, show_all: bool = False, results: str = "") -> LinesView:
    """Lay out the lines, sorted and filtered by an estimator.

    Raises:
        DocumentError: The timeline next to the document cannot be read.
    """
    analysis = opened.document
    groups: dict[_Origin, list[int]] = {}
    functions: dict[_Origin, str] = {}
    for index in (index for point in analysis.points for index in point.sites):
        origin, function = _origin(analysis, index)
        groups.setdefault(origin, []).append(index)
        functions.setdefault(origin, function)
    names = _names({origin.file for origin in groups if origin.line})
    scale = Scale(analysis.wall_s)
    # A site alone is already estimated.
    several = [sites for sites in groups.values() if len(sites) > 1]
    estimated = iter(benefits_of_sites(opened, several) if several else [])
    made = []
    for origin, sites in groups.items():
        benefit = next(estimated) if len(sites) > 1 else analysis.sites[sites[0]].benefit
        best = max(sites, key=lambda index: site_saving(analysis, index).seconds(estimator))
        made.append(
            Line(
                place=f"{names[origin.file]}:{origin.line}" if origin.line else origin.otherwise,
                file=origin.file,
                line=origin.line,
                function=functions[origin],
                calls=list(dict.fromkeys(analysis.sites[index].call for index in sites)),
                sites=sorted(index + 1 for index in sites),
                occurrences=sum(analysis.sites[index].count for index in sites),
                problems=sum(analysis.sites[index].problem_count for index in sites),
                saving=scale.saving(benefit),
                conditional=any(v.conditional for index in sites for v in analysis.sites[index].synchronization),
                command=command(f"site {best + 1}", results),
            )
        )
    made.sort(key=lambda line: -line.saving.seconds(estimator))
    shown = [line for line in made if show_all or scale.shows(line.saving, estimator)]
    return LinesView(
        application=analysis.application,
        wall_s=analysis.wall_s,
        estimator=estimator,
        lines=shown,
        hidden=len(made) - len(shown),
        everything=scale.known_saving(analysis.everything),
        without_equal_bytes=scale.known_saving(analysis.without_equal_bytes),
        nothing=why_nothing(analysis),
        results=results,
    )


def _origin(analysis: Analysis, index: int) -> tuple[_Origin, str]:
    """Return the line that a site belongs to, and its function."""
    own = own_frame(analysis.stacks[analysis.sites[index].stack].frames, analysis.modules)
    if own is not None:
        return _Origin(source_file(own.file), own.line, ""), own.function
    where = place(analysis, index)
    if where.file and where.line:
        return _Origin(where.file, where.line, ""), where.caller
    return _Origin("", 0, where.place), where.caller


def _names(files: set[str]) -> dict[str, str]:
    """Return the shortest name of each file, with enough of its folders to distinguish it from the others."""
    names = {}
    for file in files:
        parts = PurePath(file).parts
        others = [PurePath(other).parts for other in files if other != file]
        length = next(
            (length for length in range(1, len(parts)) if all(o[-length:] != parts[-length:] for o in others)),
            len(parts),
        )
        names[file] = str(PurePath(*parts[-length:]))
    return names
