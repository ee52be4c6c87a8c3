"""What correcting saves, beside what changing the program by hand would: pinned memory, kept memory, kept order."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from ffm.model.compiled import PLAIN_ROWS
from ffm.model.gpu_times.inference import infer_gpu_times
from ffm.model.timeline import Kind
from ffm.results.documents.analysis import PinnedMemory
from ffm.results.estimates import Estimates
from ffm.results.stored import benefit_of_correcting, open_results, subsequence
from ffm.stages.analysis.results import analyse
from tests.results.replayed_findings import measured, replayed, stored, two_streams


@pytest.mark.parametrize(("cost_s", "pays"), [(0.001, True), (10.0, False)])
def test_pinning_is_subtracted_and_what_does_not_pay_is_not_advertised(
    tmp_path: Path, cost_s: float, pays: bool
) -> None:
    free = analyse(measured())[0]
    memory = PinnedMemory(sites=[0], bytes=1 << 20, cost_s=cost_s)
    results = stored(dataclasses.replace(measured(), pinning=[memory]), tmp_path)
    before, site = free.sites[0].benefit.expected_s, results.document.sites[0]
    assert site.benefit.expected_s == pytest.approx(before - cost_s if pays else 0.0)
    assert site.benefit.basis is not None
    assert (site.benefit.basis.pinned_bytes == 1 << 20) == pays
    assert site.staged_s == benefit_of_correcting(results, [0]).expected_s == pytest.approx(before)
    assert replayed(results.document.everything)[1] >= max(other.benefit.expected_s for other in results.document.sites)
    assert subsequence(results, 1, 1, 1).benefit.expected_s == pytest.approx(site.benefit.expected_s)


@pytest.mark.parametrize("cost_s", [0.001, 10.0])
def test_labels_are_as_before_after_pinning_was_subtracted(cost_s: float) -> None:
    findings = measured()
    timeline, work = findings.timeline, findings.work
    assert work is not None
    times = infer_gpu_times(timeline, work)
    site = int(timeline.site[np.flatnonzero(timeline.problem)[0]])
    memory = [PinnedMemory(sites=[site], bytes=1 << 20, cost_s=cost_s)]
    copies = np.zeros(int(timeline.site.max()) + 1, np.int64)
    own, kept, sites = (np.where(timeline.problem != 0, 0, -1).astype(np.int32) for _ in range(3))
    kept.flags.writeable = False  # so that it is copied
    before = timeline.site.copy()
    found = [
        Estimates(timeline, work, copies, 10.0, lambda: times, pinning=memory).of_groups(
            label, np.zeros(1, np.int32), 1
        )
        for label in (own, kept)
    ]
    of_site = Estimates(timeline, work, copies, 10.0, lambda: times, pinning=memory).of_sites([[site]])
    assert found[0] == found[1]
    assert of_site
    assert np.array_equal(own, sites)
    assert np.array_equal(timeline.site, before)


def test_correcting_keeps_freed_memory_to_the_end_and_its_interval_ends_with_that(tmp_path: Path) -> None:
    findings = measured()
    assert findings.work is not None
    frees = np.flatnonzero((findings.timeline.kind == Kind.FREE) & (findings.timeline.problem != 0))
    findings.work.partner[frees] = frees
    results = stored(findings, tmp_path)
    sites = np.unique(results.timeline.site[frees]).tolist()
    by_hand_low, by_hand_s, by_hand_high = replayed(results.estimates.of_sites([sites])[0])
    low, corrected_s, high = replayed(benefit_of_correcting(results, sites))
    assert (low, corrected_s) == (by_hand_low, by_hand_s)
    assert high > by_hand_high


def test_corrections_keep_the_order_of_streams_and_the_expected_saving_allows_for_that(tmp_path: Path) -> None:
    """Without the waits, the kernels run side by side; corrected, one after the other."""
    results = stored(two_streams(), tmp_path)
    _, without_s, _ = replayed(results.estimates.of_sites([[1]])[0])
    _, corrected_s, _ = replayed(benefit_of_correcting(results, [1]))
    assert without_s == pytest.approx(0.02, abs=0.001)
    assert corrected_s == pytest.approx(0.01, abs=0.001)


def test_many_questions_about_corrections_are_answered_by_compiled_passes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of a small table, too, since each asks for passes over it."""
    results = stored(measured(), tmp_path)
    visits: list[int] = []

    def plainly(kernel: Callable[..., Any], rows: int, *arguments: Any) -> Any:
        visits.append(rows)
        return kernel(*arguments)

    monkeypatch.setattr("ffm.model.estimators.replay_passes.run", plainly)
    one = benefit_of_correcting(results, [0])
    assert 0 < max(visits) <= PLAIN_ROWS
    assert benefit_of_correcting(open_results(results.folder), [0], questions=PLAIN_ROWS) == one
    assert max(visits) > PLAIN_ROWS
