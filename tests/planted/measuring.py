"""Runs the stages of ffm on a planted case, and compares the verdicts with the labels."""

from __future__ import annotations

import shutil
from collections.abc import Iterator, Sequence
from contextlib import nullcontext, suppress
from dataclasses import dataclass, replace
from pathlib import Path

from ffm.instrument.session.portion import Asked
from ffm.report.verdict_reasons import WORDS
from ffm.results.documents.analysis import Analysis
from ffm.results.documents.site import Site, Verdict
from ffm.results.folder.paths import ResultsFolder
from ffm.results.stored import open_results
from ffm.results.vocabulary import FROM_ELSEWHERE, Because
from ffm.stages.analysis.stage import run_analysis
from ffm.stages.measure import Request, Watch
from ffm.stages.registry import MEASURING_STAGES
from tests.agreement import disagreements
from tests.planted.building import SECONDS, Programs
from tests.planted.labels import EQUAL, NOT_JUDGED, SYNCHRONIZATION_KINDS, Case, Expected, Label
from tests.quick_law import below_proof

BEFORE_WATCHING = ("baseline", "tracing")

NEEDED_KINDS = frozenset({"required", "misplaced", "needed", NOT_JUDGED})

NO_SYNCHRONIZATION = Label((frozenset(),))
"""For a line without a label: no verdict."""

NEEDED_TRANSFER = Label((frozenset({Expected("needed")}),))


@dataclass(frozen=True, slots=True)
class Answer:
    """What ffm said about one call, and what it should have said."""

    place: str
    """`file:line`."""
    case: str
    watch: Watch
    expected: Label
    found: frozenset[Expected]
    reason: str
    """ffm's own, in words."""

    @property
    def agrees(self) -> bool:
        """Whether ffm gave the verdicts of one alternative or, for each occurrence, one of some alternative."""
        found = self._settled
        if any(_same(found, choice) for choice in self.expected.alternatives):
            return True
        either = frozenset(one for choice in self.expected.alternatives if len(choice) == 1 for one in choice)
        return bool(found) and _said(found) <= _said(either)

    @property
    def _settled(self) -> frozenset[Expected]:
        """The finding, with `misplaced` as `required` if the label does not distinguish: on a busy machine any first
        use may come late.
        """
        expected = {one.kind for choice in self.expected.alternatives for one in choice}
        if "in place" in expected:
            return frozenset(replace(one, kind="in place") if one.kind == "required" else one for one in self.found)
        if "misplaced" in expected:
            return self.found
        return frozenset(replace(one, kind="required") if one.kind == "misplaced" else one for one in self.found)

    @property
    def problem_expected(self) -> bool:
        """Whether the operation is labelled as not needed; if the label leaves that open, ffm's verdict is right."""
        return self.problem_found if self.expected.open else not self.expected.needed

    @property
    def problem_found(self) -> bool:
        """Whether ffm calls it not needed, in any of its occurrences."""
        return any(one.kind not in NEEDED_KINDS for one in self.found)

    def __str__(self) -> str:
        found = str(Label((self.found,))) if self.found else "no verdict"
        expected = str(self.expected) if any(self.expected.alternatives) else "no verdict"
        return f"{self.place} [{self.case}, {self.watch}] expected {expected}; got {found}" + (
            f" ({self.reason})" if self.reason else ""
        )


class TooLittleError(Exception):
    """Quick mode promises less than the full measurement proves."""


class ScreensError(Exception):
    """Two screens show different figures of the same thing."""


def answers_for(
    case: Case,
    programs: Programs,
    results: Path,
    watches: Sequence[Watch],
    timeout_s: float = SECONDS,
    portion: Asked | None = None,
) -> list[Answer]:
    """Measure a case with all stages, and return what ffm said about each call in the program, with each watch.

    `portion` is what is measured of the run; None for all. The first two stages do not depend on the watch, so they run
    once. Results are kept if ffm failed or differs from a label. The GPU's times are from another run than the trace,
    in which the GPU may have been held up: what quick mode promises is looked at once more if it is too little.

    Raises:
        FfmError: A stage failed; the program ends correctly without ffm.
        ScreensError: Two screens differ.
        TooLittleError: What quick mode says that doing without a call saves at most is less than what is proved.
    """
    with suppress(TooLittleError):
        return _measured(case, programs, results, watches, timeout_s, portion)
    return _measured(case, programs, results, watches, timeout_s, portion)


def _measured(
    case: Case, programs: Programs, results: Path, watches: Sequence[Watch], timeout_s: float, portion: Asked | None
) -> list[Answer]:
    shutil.rmtree(results, ignore_errors=True)
    results.mkdir(parents=True)
    folder = ResultsFolder(results)
    command = [str(programs.executable(case.source)), case.variant]
    for name in BEFORE_WATCHING:
        MEASURING_STAGES[name](Request(command, folder, timeout_s, portion=portion))
    answers: list[Answer] = []
    for watch in watches:
        request = Request(command, folder, timeout_s, watch=watch)
        with programs.very_slow_gpu() if watch == "trace" else nullcontext():
            MEASURING_STAGES["memory"](request)
        MEASURING_STAGES["sync-use"](request)
        analysis = run_analysis(folder)
        answers += _compare(case, analysis, watch)
        if found := disagreements(open_results(results)):
            raise ScreensError("; ".join(found))
        # The trace's run is of a much slower GPU (TRACED): it can prove more than quick mode promises.
        if watch != "trace" and (found := below_proof(analysis, results)):
            raise TooLittleError("; ".join(found))
    if all(answer.agrees for answer in answers):
        shutil.rmtree(results)
    return answers


def _compare(case: Case, analysis: Analysis, watch: Watch) -> Iterator[Answer]:
    """Return every labelled call, and every other call of the program that got a verdict."""
    sites: dict[int, list[Site]] = {}
    for site in analysis.sites:
        if Path(site.file).name == case.source.name:
            sites.setdefault(site.line, []).append(site)
    line_of_stack = {site.stack: (site.file, site.line) for site in analysis.sites}
    for number in sorted({*sites, *case.lines}):
        line = case.lines.get(number)
        place = f"{case.source.name}:{number}"
        at_line = sites.get(number, [])
        for sort in ("synchronization", "transfer"):
            verdicts = [verdict for site in at_line for verdict in getattr(site, sort)]
            label = getattr(line, sort) if line is not None else None
            found = frozenset(
                Expected(_kind(verdict), _partner(case, verdict, label, line_of_stack)) for verdict in verdicts
            )
            if sort == "transfer":
                # Needed operations are not listed, so occurrences without a verdict are needed.
                listed = sum(verdict.occurrences for verdict in verdicts)
                if label is not None and listed < sum(site.count for site in at_line):
                    found |= {Expected("needed")}
            if label is None and not _tells(found):
                continue
            yield Answer(
                place=place,
                case=case.name,
                watch=watch,
                expected=label or (NO_SYNCHRONIZATION if sort == "synchronization" else NEEDED_TRANSFER),
                found=found,
                reason="; ".join(sorted({WORDS[verdict.because] for verdict in verdicts})),
            )


def _kind(verdict: Verdict) -> str:
    """Return the kind that a label names."""
    if verdict.because is Because.REPEAT_UNSEEN:
        return "unseen"
    return verdict.kind + (EQUAL if verdict.because in FROM_ELSEWHERE else "")


def _tells(found: frozenset[Expected]) -> bool:
    """Whether there is a verdict that needs a label."""
    return any(one.kind in SYNCHRONIZATION_KINDS or one.kind not in NEEDED_KINDS for one in found)


def _partner(case: Case, verdict: Verdict, label: Label | None, line_of_stack: dict[int, tuple[str, int]]) -> str:
    """Return the name of the call that a verdict refers to, if the label names one too."""
    named = label is not None and any(one.partner for choice in label.alternatives for one in choice)
    stack = verdict.keep if verdict.keep is not None else verdict.first
    if not named or stack is None:
        return ""
    _, line = line_of_stack.get(stack, ("", 0))
    known = case.lines.get(line)
    return known.name if known is not None and known.name else f"line {line}"


def _same(found: frozenset[Expected], choice: frozenset[Expected]) -> bool:
    return _said(found) == _said(choice)


def _said(verdicts: frozenset[Expected]) -> frozenset[tuple[str, str]]:
    return frozenset((one.kind, one.partner) for one in verdicts)
