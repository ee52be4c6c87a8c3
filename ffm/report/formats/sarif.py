"""Remedies as SARIF 2.1.0 (OASIS), which editors and code review tools show at the line."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from ffm import __version__
from ffm.report.names import below
from ffm.report.numbers import Estimator, Scale
from ffm.report.remedies.view import OWN_LINE, RemediesView, RemedyPlace, RemedyView

SCHEMA = "https://json.schemastore.org/sarif-2.1.0.json"


def sarif(view: RemediesView, root: Path) -> dict[str, Any]:
    """Return the SARIF log of the remedies whose file and line are known; paths below `root` are relative to it."""
    shown = [remedy for remedy in view.remedies if remedy.where.line]
    kinds = sorted({remedy.kind for remedy in shown})
    results = [_result(remedy, Scale(view.wall_s), view.estimator, root) for remedy in shown]
    return log({_rule(kind): kind.capitalize() for kind in kinds}, results)


def log(rules: Mapping[str, str], results: list[dict[str, Any]]) -> dict[str, Any]:
    """Return the SARIF log of some results; `rules` says what each rule is about."""
    return {
        "$schema": SCHEMA,
        "version": "2.1.0",
        "runs": [
            {
                "tool": {
                    "driver": {
                        "name": "ffm",
                        "version": __version__,
                        "rules": [{"id": rule, "shortDescription": {"text": text}} for rule, text in rules.items()],
                    }
                },
                "results": results,
            }
        ],
    }


def _rule(kind: str) -> str:
    return "ffm/" + kind.replace(" ", "-")


def _result(remedy: RemedyView, scale: Scale, estimator: Estimator, root: Path) -> dict[str, Any]:
    saving = f"{scale.describe(remedy.saving, estimator)} of the run's {scale.seconds(scale.wall_s)}"
    message = f"{remedy.where.call}: {remedy.kind}; fixing it alone saves {saving}. {' '.join(remedy.steps)}"
    own = next((place.where for place in remedy.places if place.role == OWN_LINE), None)
    told = (OWN_LINE,) if own is not None else ("call",)
    related = [place for place in remedy.places if place.role not in told and place.where.line]
    where = remedy.where if own is None else own
    return {
        "ruleId": _rule(remedy.kind),
        "level": "warning",
        "message": {"text": message},
        "locations": [location(where.file, where.line, root)],
        "relatedLocations": [_related(place, root) for place in related],
        "properties": {
            "benefitSeconds": remedy.saving.seconds(estimator),
            "benefitIsAtMost": remedy.saving.at_most,
            "estimator": estimator,
            "occurrences": remedy.occurrences,
        },
    }


def _related(place: RemedyPlace, root: Path) -> dict[str, Any]:
    text = f"{place.role} {place.buffer}: {place.where.call}" if place.buffer else f"{place.role}: {place.where.call}"
    return {**location(place.where.file, place.where.line, root), "message": {"text": text}}


def location(file: str, line: int, root: Path) -> dict[str, Any]:
    """Return a line of a file; a path below `root` is relative to it."""
    path = Path(below(file, root))
    uri = path.as_uri() if path.is_absolute() else path.as_posix()
    return {"physicalLocation": {"artifactLocation": {"uri": uri}, "region": {"startLine": line}}}
