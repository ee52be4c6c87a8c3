"""Intervals where chance decides which operations of a site are problems."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from ffm.model.gpu_times.inference import infer_gpu_times
from ffm.model.timeline import Kind, Problem
from ffm.results.documents.analysis import ChosenByChance
from ffm.results.estimates import Estimates
from tests.model.timelines import simple_device_work
from tests.results.loop_findings import loop_timeline

WALL_S = 10.0


def test_the_interval_reaches_from_the_shortest_calls_to_the_longest() -> None:
    timeline = loop_timeline()
    waits = timeline.kind == Kind.SYNCHRONIZATION
    timeline = replace(timeline, problem=np.where(waits, np.uint8(Problem.UNNECESSARY_SYNCHRONIZATION), np.uint8(0)))
    work = simple_device_work(timeline)
    times = infer_gpu_times(timeline, work)
    site = int(timeline.site[waits][0])
    copies = np.zeros(int(timeline.site.max()) + 1, np.int64)
    chance = ChosenByChance(site=site, operations=1, of=2, least=0.5, most=1.25)
    sure = Estimates(timeline, work, copies, WALL_S, lambda: times).of_sites([[site]])[0]
    wide = Estimates(timeline, work, copies, WALL_S, lambda: times, by_chance=[chance]).of_sites([[site]])[0]
    assert sure.low_s is not None and sure.high_s is not None and sure.high_s > 0
    assert wide.replay_s == sure.replay_s
    assert wide.low_s == pytest.approx(sure.low_s * 0.5)
    assert wide.high_s == pytest.approx(min(sure.high_s * 1.25, WALL_S))
