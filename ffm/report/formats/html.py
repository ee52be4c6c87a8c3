"""Everything that the terminal shows, with pictures, in one HTML file that needs no network. Only the picture of the
run in time needs a script, which the file contains.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from jinja2 import Environment, PackageLoader, StrictUndefined, select_autoescape
from markupsafe import Markup, escape

from ffm.report import not_measured, unproved
from ffm.report.commands import command
from ffm.report.downloads import is_partial
from ffm.report.fold import fold
from ffm.report.formats import pictures
from ffm.report.formats.pictures import Picture, calls_picture, run_picture, sequence_picture, unproved_picture
from ffm.report.formats.timeline import TimelineData
from ffm.report.names import cut_middle, shorten
from ffm.report.numbers import (
    ESTIMATOR_MEANINGS,
    Estimator,
    Scale,
    count,
    hidden_rows,
    percent,
    plural,
    ranges,
    saved_together,
    shown_estimators,
    size,
)
from ffm.report.overview import Overview, overview
from ffm.report.remedies.view import RemediesView
from ffm.report.sequence import SequenceView, sequence
from ffm.report.site import site
from ffm.report.waiting.shares import in_one_line
from ffm.results.documents.analysis import Analysis
from ffm.whole_file import named_output

_BEFORE_UNIT = re.compile(r"(?<=\d) (?=(?:%|s)(?!\w))")


@dataclass(frozen=True, slots=True)
class DrawnSequence:
    """A sequence with its picture."""

    view: SequenceView
    picture: Picture


def write_html(
    analysis: Analysis,
    path: Path,
    estimator: Estimator = "carry",
    remedies: RemediesView | None = None,
    *,
    show_all: bool = False,
    results: str = "",
    timeline: TimelineData | None = None,
) -> None:
    """Write the report to a file, with the remedies and the run in time if they are given.

    Raises:
        OSError: The file cannot be written.
    """
    page = html(analysis, estimator, remedies, show_all=show_all, results=results, timeline=timeline)
    with named_output(path) as file:
        file.write(page.encode())


def html(
    analysis: Analysis,
    estimator: Estimator = "carry",
    remedies: RemediesView | None = None,
    *,
    show_all: bool = False,
    results: str = "",
    timeline: TimelineData | None = None,
) -> str:
    """Return the report as the text of one HTML file. Names from the measured program are escaped.

    As on the terminal, rows below 0.1 % of the run are counted instead of listed unless `show_all` is set. `results` is
    the option that names these results, as the user gave it; the printed commands repeat it.
    """
    scale = Scale(analysis.wall_s)
    environment = Environment(
        loader=PackageLoader("ffm.report.formats"),
        autoescape=select_autoescape(["html.j2"]),
        undefined=StrictUndefined,
        finalize=_unbroken,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters.update(
        seconds=scale.seconds, share=scale.share, percent=percent, count=count, bytes=size, ranges=ranges
    )
    environment.filters.update(shorten=shorten, cut=cut_middle, plural=plural, saving=scale.describe, words=shlex.join)
    environment.filters.update(command=partial(command, results=results), hidden=_hidden(results), code=_code)
    view = overview(analysis, estimator, show_all=show_all, results=results)
    sequences = [
        DrawnSequence(sequence(analysis, number, estimator), sequence_picture(analysis, number, estimator))
        for number in (row.number for row in view.sequences.rows)
        if number is not None
    ]
    folds = [fold(analysis, row.name, estimator, show_all=show_all) for row in view.folds.rows]
    return environment.get_template("report.html.j2").render(
        scale=scale,
        unproved=unproved,
        not_measured=not_measured,
        view=view,
        proves=analysis.proves,
        together=saved_together(view.everything, scale, estimator, view.without_equal_bytes),
        path_line=in_one_line(view.path),
        estimators=shown_estimators(estimator),
        shown=shown_estimators(estimator),
        meanings=ESTIMATOR_MEANINGS,
        run=run_picture(analysis, estimator),
        calls=calls_picture(analysis, estimator),
        waits=unproved_picture(view.unproved, scale),
        sequences=sequences,
        folds=folds,
        remedies=remedies,
        timeline=timeline,
        sites=[
            site(analysis, number, estimator, results=results)
            for number in _mentioned(analysis, view, sequences, remedies)
        ],
        size=pictures,
    )


def _unbroken(value: object) -> object:
    """Return what a template shows without line breaks between numbers and their units."""
    if not isinstance(value, str):
        return value
    text = _BEFORE_UNIT.sub("\N{NO-BREAK SPACE}", value)
    return Markup(text) if isinstance(value, Markup) else text


def _hidden(results: str) -> Callable[[int, str, Estimator], str]:
    """Return the filter that says how many rows are hidden."""
    return partial(hidden_rows, shown_by=f"`{command('report --all --html FILE', results)}`")


def _code(text: str) -> Markup:
    """Return a sentence with the text between backticks marked up as code."""
    parts = text.split("`")
    return Markup("").join(
        Markup("<code>{}</code>").format(part) if place % 2 else escape(part) for place, part in enumerate(parts)
    )


def _mentioned(
    analysis: Analysis, view: Overview, sequences: list[DrawnSequence], remedies: RemediesView | None
) -> list[int]:
    """Return the numbers of the sites to describe: those with problems or about which nothing is proved, and those that
    they refer to.
    """
    numbers = {number for number, found in enumerate(analysis.sites, 1) if found.problem_count}
    numbers |= {one.where.site for one in view.unproved}
    numbers |= {index + 1 for group in (*analysis.points, *analysis.folds) for index in group.sites}
    numbers |= {operation.where.site for drawn in sequences for operation in drawn.view.operations}
    numbers |= {drawn.view.ends_at.site for drawn in sequences if drawn.view.ends_at is not None}
    numbers |= {number for number, found in enumerate(analysis.sites, 1) if is_partial(found.download)}
    for remedy in remedies.remedies if remedies is not None else []:
        numbers |= {where.site for where in (*(place.where for place in remedy.places), *remedy.keep)}
    for index in list(numbers):
        found = analysis.sites[index - 1]
        verdicts = (*found.synchronization, *found.transfer)
        numbers |= {other + 1 for verdict in verdicts for other in (verdict.keep, verdict.first) if other is not None}
    return sorted(numbers)
