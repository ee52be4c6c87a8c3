"""The remedies of an analysis, as the screen, the JSON and SARIF show them."""

from __future__ import annotations

from dataclasses import dataclass, field

from ffm.report.numbers import Estimator, Saving
from ffm.report.places import Place, StackFrame
from ffm.report.timing import TimingWaits


@dataclass(frozen=True, slots=True)
class RemedyPlace:
    """A place that must change. `buffer` is the program's name for the memory there, and `source` is the line of source
    code if the file is available; otherwise they are empty.
    """

    role: str
    where: Place
    buffer: str
    source: str


@dataclass(frozen=True, slots=True)
class RemedyView:
    """What to change for one call site. `keep` lists synchronizations that must stay.

    `automatic` lists the options with which `ffm apply-remedy` does it. If there are none, `not_automatic` says why; it
    is empty for imported results.
    """

    number: int
    kind: str
    where: Place
    reached: str
    """` from solver.cu:57` if another remedy has the same place; otherwise empty."""
    occurrences: int
    of: int
    saving: Saving
    steps: list[str]
    places: list[RemedyPlace]
    keep: list[Place]
    stack: list[StackFrame]
    automatic: list[str]
    not_automatic: str


@dataclass(frozen=True, slots=True)
class RemediesView:
    """Everything on the screen of `ffm remedies`, sorted by one estimator. `hidden` counts the remedies that save less
    than 0.1 % of the run. `results` is the option that names these results, as the user gave it, or empty.
    """

    application: str
    wall_s: float
    estimator: Estimator
    remedies: list[RemedyView]
    hidden: int
    results: str
    timing: list[TimingWaits] = field(default_factory=list)
    """Waits that are no problems, but serve only to measure times."""
