"""`ffm remedies`: what to change, where, and what it would save."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from ffm.cli.options import estimator_option, json_option, open_chosen, results_option, results_words, view_command

if TYPE_CHECKING:
    from ffm.remedy.frameworks import Framework
    from ffm.remedy.identify import ProblemSite, Remedy
    from ffm.report.numbers import Estimator, Saving
    from ffm.report.remedies import RemediesView
    from ffm.results.analysis_document import Analysis, Site


@click.command(cls=view_command("ffm.report.remedies:RemediesView"))
@estimator_option
@results_option
@json_option
@click.option("--all", "show_all", is_flag=True, help="Also show remedies that save less than 0.1 % of the run.")
@click.option(
    "--sarif",
    type=click.Path(path_type=Path, dir_okay=False),
    help="Also write the remedies as SARIF 2.1.0 to this file.",
)
def remedies(
    estimator: Estimator | None, folder: Path | None, as_json: bool, show_all: bool, sarif: Path | None
) -> None:
    """For each problem, show its kind, the steps to fix it and every place that must change, largest benefit first."""
    import orjson

    opened = open_chosen(folder)
    view = remedies_view(opened.document, estimator, show_all=show_all, results=results_words(folder), own=opened.own)
    if sarif is not None:
        from ffm.report.sarif import sarif as sarif_log
        from ffm.whole_file import named_output

        log = sarif_log(view, Path.cwd())
        with named_output(sarif) as file:
            file.write(orjson.dumps(log, option=orjson.OPT_INDENT_2))
        unknown = len(view.remedies) - len(log["runs"][0]["results"])
        without = f"; {unknown} remedies without a known source line are left out" if unknown else ""
        click.echo(f"Wrote {sarif}: {len(log['runs'][0]['results'])} results{without}.")
        return
    if as_json:
        click.echo(orjson.dumps(view, option=orjson.OPT_INDENT_2))
        return
    from ffm.report.terminal.printing import print_screen
    from ffm.report.terminal.remedies import render_remedies

    print_screen(render_remedies, view)


def problem_sites(analysis: Analysis, estimator: Estimator) -> list[ProblemSite]:
    """Describe the sites with problems as the remedies need them."""
    from ffm.remedy.identify import MemoryLink, PartialDownload, ProblemSite
    from ffm.report.downloads import download
    from ffm.report.places import site_saving

    found = []
    for index, site in enumerate(analysis.sites):
        use = download(site.download)
        partial = None
        if use is not None and use.partial:
            partial = PartialDownload(
                bytes=use.bytes // use.occurrences,
                touched_bytes=use.touched_bytes,
                first=use.first,
                last=use.last,
                watched=use.occurrences,
                of=use.of,
                untouched=use.untouched,
                text=use.text,
                saving_s=use.saving_s,
            )
        if not site.problem_count and partial is None:
            continue
        verdicts = (*site.synchronization, *site.transfer) if site.problem_count else ()
        occurrences = {verdict.kind: 0 for verdict in verdicts}
        for verdict in verdicts:
            occurrences[verdict.kind] += verdict.occurrences
        unnecessary = occurrences.get("unnecessary", 0) + occurrences.get("conditionally unnecessary", 0)
        mostly = unnecessary * 2 > site.count
        found.append(
            ProblemSite(
                site=index,
                call=site.call,
                kind=site.kind,
                sets_memory=site.function.startswith("cuMemset"),
                count=site.count,
                unnecessary=unnecessary if mostly else 0,
                misplaced=0 if mostly else site.problem_count,
                no_op=occurrences.get("no-op", 0),
                repeat=occurrences.get("repeat", 0),
                changed=_changed(index, site),
                keep=tuple(sorted({verdict.keep for verdict in site.synchronization if verdict.keep is not None})),
                memory=tuple(
                    MemoryLink(link.role, link.memory, link.allocation, link.release, link.occurrences)
                    for link in analysis.allocations
                    if link.site == index
                ),
                benefit_s=site_saving(analysis, index).seconds(estimator),
                downloads=site.download is not None,
                download=partial,
                framework=_framework(analysis, site),
            )
        )
    return found


def _changed(index: int, site: Site) -> int:
    """Return how many transfers brought other bytes than those that are repeated, the first of which may be here."""
    repeated = [verdict for verdict in site.transfer if verdict.kind in ("no-op", "repeat")]
    others = site.count - sum(verdict.occurrences for verdict in repeated)
    return max(others - any(verdict.first in (index, None) for verdict in repeated), 0)


def _framework(analysis: Analysis, site: Site) -> Framework | None:
    """Return the Python package through which a site's call is made; None if its stack has no Python function."""
    from ffm.remedy.frameworks import PYTHON, framework_of

    frames = analysis.stacks[site.stack].frames
    if not any(frame.python for frame in frames):
        return None
    modules = [module.path for module in analysis.modules]
    # A tensor's own methods are no Python functions: there only the library tells.
    files = (
        frame.file if frame.python else modules[frame.module] if 0 <= frame.module < len(modules) else ""
        for frame in frames
    )
    return framework_of(files) or PYTHON


def _saving(analysis: Analysis, remedy: Remedy) -> Saving:
    """Return what the remedy saves. By any estimator, a smaller download saves at most its copying time."""
    from ffm.remedy.identify import RemedyKind
    from ffm.report.numbers import Scale
    from ffm.report.places import site_saving
    from ffm.results.analysis_document import Benefit

    if remedy.kind is not RemedyKind.PARTIAL_DOWNLOAD:
        return site_saving(analysis, remedy.site)
    most = remedy.benefit_s
    benefit = Benefit(carry_s=most, bound_s=most, low_s=0.0, high_s=most, rests_on="the minimum time to copy the rest")
    return Scale(analysis.wall_s).saving(benefit, at_most=True)


def remedies_view(
    analysis: Analysis,
    estimator: Estimator | None = None,
    *,
    show_all: bool = False,
    results: str = "",
    own: bool = False,
) -> RemediesView:
    """Lay out the remedies of an analysis, sorted and filtered by an estimator; the default is the document's own.

    `own` is whether this user measured it, so that its source files may be read wherever they are.

    Raises:
        FfmError: A replay is requested from a document that has none.
    """
    from ffm.remedy.fitness import fitness
    from ffm.remedy.identify import identify_remedies
    from ffm.report.numbers import Scale, chosen_estimator
    from ffm.report.places import place, stack_frames, told_apart
    from ffm.report.remedies import RemediesView, RemedyPlace, RemedyView
    from ffm.report.source_lines import SourceLines
    from ffm.report.timing import timing_waits

    chosen = chosen_estimator(analysis, estimator)
    identified = identify_remedies(problem_sites(analysis, chosen))
    fitting = fitness(analysis)
    scale = Scale(analysis.wall_s)
    with_savings = [(remedy, _saving(analysis, remedy)) for remedy in identified]
    shown = [(remedy, saving) for remedy, saving in with_savings if show_all or scale.shows(saving, chosen)]
    apart = told_apart(analysis, (remedy.site for remedy, _ in shown))
    sources = SourceLines(own=own)
    views = []
    for number, (remedy, saving) in enumerate(shown, 1):
        places = []
        for changed in remedy.places:
            where = place(analysis, changed.site)
            buffer = analysis.sites[changed.site].buffer
            places.append(RemedyPlace(changed.role, where, buffer, sources.line(where.file, where.line)))
        fit = fitting.get(remedy.site)
        views.append(
            RemedyView(
                number=number,
                kind=remedy.kind,
                where=place(analysis, remedy.site),
                reached=apart.get(remedy.site, ""),
                occurrences=remedy.occurrences,
                of=remedy.of,
                saving=saving,
                steps=list(remedy.steps),
                places=places,
                keep=[place(analysis, kept) for kept in remedy.keep],
                stack=stack_frames(analysis, remedy.site),
                automatic=[f"--{option}" for option in fit.remedies] if fit is not None else [],
                not_automatic=fit.why_not if fit is not None else "",
            )
        )
    hidden = len(identified) - len(shown)
    return RemediesView(analysis.application, analysis.wall_s, chosen, views, hidden, results, timing_waits(analysis))
