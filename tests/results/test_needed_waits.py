"""Needed waits, with what doing without them would save: by events between streams, by fetching results later, or by
uploads that do not wait.
"""

from __future__ import annotations

import dataclasses
from pathlib import Path

import msgspec
import numpy as np
import pytest
from numpy.typing import NDArray

from ffm.model.necessity.reasons import Reason
from ffm.model.timeline import Kind
from ffm.report.site import site
from ffm.results.documents.site import Verdict
from ffm.results.documents.stacks import Frame, Stack
from ffm.results.stored import Results, doing_without, open_results
from ffm.results.vocabulary import Because
from ffm.stages.analysis.findings import Findings
from ffm.stages.analysis.problems import only_order_streams
from ffm.stages.analysis.python_waits import fetches_of, sends_of
from ffm.stages.analysis.results import write_results
from tests.results.loop_findings import ITERATIONS, loop_findings
from tests.results.replayed_findings import measured, stored, two_streams


def test_doing_without_is_answered_by_replay_whatever_the_estimator(tmp_path: Path) -> None:
    results = stored(measured(), tmp_path)
    number = len(results.document.sites) - 1
    required = Verdict(kind="required", because=Because.RESULT_USED, occurrences=ITERATIONS)
    sites = [*results.document.sites]
    sites[number] = msgspec.structs.replace(sites[number], synchronization=[required])
    needed = Results(results.folder, msgspec.structs.replace(results.document, sites=sites))
    assert [doing_without(needed, other) for other in range(number)] == [None] * number
    answers = [
        site(needed.document, number + 1, estimator, doing_without(needed, number)).without
        for estimator in ("replay", "carry", "bound")
    ]
    assert answers[0] is not None and answers[0].seconds > 0
    assert answers[0].low_s <= answers[0].seconds <= answers[0].high_s <= results.document.wall_s
    assert answers == [answers[0]] * 3


def test_without_a_trace_nobody_can_tell_what_doing_without_saves(tmp_path: Path) -> None:
    imported = stored(loop_findings(), tmp_path)
    assert imported.estimates.without(np.ones(len(imported.timeline), bool)) is None


def test_waits_that_only_order_streams_are_listed_with_what_events_save(tmp_path: Path) -> None:
    findings = two_streams()
    waits = findings.timeline.wait > 0
    findings.timeline.problem[:] = 0
    reasons = np.where(waits, Reason.ORDERS_STREAMS, Reason.NOT_A_SYNCHRONIZATION).astype(np.uint8)
    ordering = only_order_streams(reasons, findings.timeline)
    assert ordering.tolist() == waits.tolist()
    [wait] = stored(dataclasses.replace(findings, ordering=ordering), tmp_path).document.ordering
    assert (wait.site, wait.occurrences) == (1, 2)
    assert wait.saving_s == pytest.approx(0.01, abs=0.001)


NO_UPLOADS = np.zeros(5, np.bool_)


@pytest.mark.parametrize(
    ("reason", "python"), [(Reason.RESULT_USED, True), (Reason.NOT_WATCHED, True), (Reason.RESULT_USED, False)]
)
def test_needed_waits_of_python_code_are_listed_with_what_not_to_wait_saves(
    tmp_path: Path, reason: Reason, python: bool
) -> None:
    """Site 1 waits twice for what the CPU uses, and site 2 once. Who wrote C++ knows what a download is."""
    findings = two_streams()
    findings.timeline.problem[:] = 0
    waits = findings.timeline.kind == Kind.SYNCHRONIZATION
    reasons = np.where(waits, reason, Reason.NOT_A_SYNCHRONIZATION).astype(np.uint8)
    fetching = fetches_of(
        reasons, np.full(5, -1, np.int32), NO_UPLOADS, findings.timeline, lines_of(7, 7, 7, python=python)
    )
    assert (fetching is not None) == python  # a column takes memory throughout the analysis
    found = [
        (wait.site, wait.occurrences, wait.watched)
        for wait in stored(dataclasses.replace(findings, fetching=fetching), tmp_path).document.fetching
    ]
    assert found == ([(1, 2, reason == Reason.RESULT_USED)] if python else [])


@pytest.mark.parametrize(("uploaded", "reason", "fetches"), [
    (True, Reason.NOT_WATCHED, False),
    (False, Reason.NOT_WATCHED, True),
    (True, Reason.RESULT_USED, True),
])  # fmt: skip
def test_a_wait_for_what_an_upload_reads_is_no_fetch(uploaded: bool, reason: Reason, fetches: bool) -> None:
    """What could not be watched may be its source. What the CPU was seen to use was fetched by something before it."""
    timeline = two_streams().timeline
    timeline.problem[:] = 0
    timeline.kind[:] = [Kind.LAUNCH, Kind.TRANSFER, Kind.SYNCHRONIZATION, Kind.TRANSFER, Kind.SYNCHRONIZATION]
    timeline.site[:] = [0, 1, 2, 1, 2]
    reasons = np.array([0, 0, reason, 0, reason], np.uint8)
    uploads = np.array([False, uploaded, False, uploaded, False])
    fetching = fetches_of(reasons, np.full(5, -1, np.int32), uploads, timeline, lines_of(7, 7, 7))
    assert (fetching is not None) == fetches


@pytest.mark.parametrize(("line", "saved_s"), [(7, 0.02), (8, 0.0)])
def test_a_fetch_is_done_without_its_whole_line_of_the_program(tmp_path: Path, line: int, saved_s: float) -> None:
    """In `float(array[0])`, the copy of CuPy waits (site 1); what follows it (2) then waits for nothing."""
    findings = two_streams()
    findings.timeline.problem[:] = 0
    findings.timeline.site[:] = [0, 1, 2, 1, 2]
    covers, used = Reason.LATER_COVERS, Reason.RESULT_USED
    reasons = np.array([0, covers, used, covers, used], np.uint8)
    fetching = fetches_of(
        reasons, np.array([-1, 2, -1, 2, -1], np.int32), NO_UPLOADS, findings.timeline, lines_of(6, line, 7)
    )
    [wait] = stored(dataclasses.replace(findings, fetching=fetching), tmp_path).document.fetching
    assert (wait.site, wait.occurrences) == (2, 2)
    assert wait.saving_s == pytest.approx(saved_s, abs=0.001)


@pytest.mark.parametrize(
    ("reason", "uploaded", "sent"),
    [
        (Reason.SOURCE_OVERWRITTEN, True, True),
        (Reason.NOT_WATCHED, True, True),
        (Reason.SOURCE_OVERWRITTEN, False, False),  # something else reads what is then written
        (Reason.RESULT_USED, True, False),
    ],
)
def test_waits_for_uploads_are_listed_with_what_not_to_wait_saves(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, reason: Reason, uploaded: bool, sent: bool
) -> None:
    findings, uploads = two_uploads()
    reasons = np.array([0, 0, reason, 0, reason], np.uint8)
    monkeypatch.setattr("ffm.stages.analysis.python_waits.pageable_memory", lambda columns, rows: (rows[:0], rows[:0]))
    sending = sends_of(reasons, np.full(5, -1, np.int32), uploads & uploaded, findings.timeline, lines_of(7, 7, 7), {})
    assert (sending is not None) == sent
    write_results(dataclasses.replace(findings, sending=sending), tmp_path)
    found = [(wait.site, wait.occurrences, wait.pageable) for wait in open_results(tmp_path).document.sending]
    assert found == ([(2, 2, False)] if sent else [])


@pytest.mark.parametrize("covered", [True, False])
def test_an_upload_is_done_without_the_waits_for_those_before_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, covered: bool
) -> None:
    """`x.to()` and `y.to()` on two lines: whoever leaves out one wait of the two waits as long in the other."""
    findings, uploads = two_uploads()
    reasons = np.array([0, 0, Reason.SOURCE_OVERWRITTEN, 0, Reason.SOURCE_OVERWRITTEN], np.uint8)
    keep = np.full(5, -1, np.int32)
    if covered:
        reasons[1], keep[1] = Reason.LATER_COVERS, 2
    monkeypatch.setattr("ffm.stages.analysis.python_waits.pageable_memory", lambda columns, rows: (rows, rows))
    sending = sends_of(reasons, keep, uploads, findings.timeline, lines_of(6, 7, 8), {})
    assert sending is not None
    assert sending.site.tolist() == [-1, 2 if covered else -1, 2, -1, 2]
    assert sending.pageable[[2, 4]].all()


def two_uploads() -> tuple[Findings, NDArray[np.bool_]]:
    """Return a launch, and two uploads that are waited for at site 2; and which rows upload."""
    findings = two_streams()
    findings.timeline.problem[:] = 0
    kinds = [Kind.LAUNCH, Kind.TRANSFER, Kind.SYNCHRONIZATION, Kind.TRANSFER, Kind.SYNCHRONIZATION]
    findings.timeline.kind[:] = kinds
    findings.timeline.site[:] = [0, 1, 2, 1, 2]
    return findings, findings.timeline.kind == Kind.TRANSFER


def lines_of(*lines: int, python: bool = True) -> list[Stack]:
    """Return the stacks of sites that are called from these lines."""
    native = Frame(module=0, offset=1)
    return [
        Stack(
            key=f"{line:032x}",
            frames=[native, Frame(module=0, offset=0, function="step", file="a.py", line=line, python=python)],
        )
        for line in lines
    ]
