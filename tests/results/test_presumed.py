"""What removing unproved waits and transfers saves at most."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from ffm.model.device import Action
from ffm.model.gpu_times.inference import infer_gpu_times
from ffm.model.timeline import Kind, Problem
from ffm.results.estimates import Estimates
from ffm.results.presumed import Presumed, waiting
from ffm.results.variation import Variation
from tests.model.timelines import simple_device_work
from tests.results.loop_findings import loop_timeline

WALL_S = 10.0


@given(st.data())
def test_no_proof_exceeds_it(data: st.DataObject) -> None:
    """Whatever turns out to be a problem, and whatever the GPU turns out to need of the time that was waited for."""
    timeline = loop_timeline()
    share = data.draw(st.floats(0, 1))
    waits = data.draw(st.lists(st.integers(0, 4_000_000), min_size=len(timeline), max_size=len(timeline)))
    wait = np.minimum(np.array(waits), timeline.duration)
    timeline = replace(timeline, wait=np.where(timeline.kind == Kind.SYNCHRONIZATION, wait, timeline.wait))
    work = simple_device_work(timeline)
    proved = data.draw(st.lists(st.booleans(), min_size=len(timeline), max_size=len(timeline)))
    flags = np.where(waiting(timeline, work) & proved, np.uint8(Problem.UNNECESSARY_SYNCHRONIZATION), np.uint8(0))
    measured = np.where(timeline.kind == Kind.LAUNCH, share * 3_000_000, -1).astype(np.int64)
    sites = int(timeline.site.max()) + 1
    copies, groups = np.zeros(sites, np.int64), [[site] for site in range(sites)]
    known = replace(work, measured=measured)
    times = infer_gpu_times(timeline, known)
    late = infer_gpu_times(timeline, work, anything_late=True).if_anything_is_late()
    full = Estimates(replace(timeline, problem=flags), known, copies, WALL_S, lambda: times)
    quick = Presumed(timeline, work, copies, WALL_S, lambda: late, Variation())
    for found, most in zip(full.of_sites(groups), quick.of_sites(groups), strict=True):
        assert most.high_s is not None
        assert found.expected_s <= most.high_s + 1e-9


def test_waiting_for_other_threads_is_not_waiting_for_the_gpu() -> None:
    timeline = loop_timeline()
    work = simple_device_work(timeline)
    row = int(np.flatnonzero(waiting(timeline, work))[0])
    action = work.action.copy()
    action[row] = Action.WAIT_THREAD
    assert not waiting(timeline, replace(work, action=action))[row]
