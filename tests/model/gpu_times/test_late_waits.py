"""How late waits may end until they show that the GPU worked longer."""

from __future__ import annotations

import numpy as np

from ffm.model.gpu_times.kernels import Rules, late_at_most
from ffm.model.gpu_times.limits import ANY
from ffm.model.gpu_times.timelines import ENDLESS_NS


def test_a_wait_may_be_as_late_as_its_work_and_its_site_allow() -> None:
    rules = Rules(0, 0, np.array([ANY, 5], np.int32), np.array([ENDLESS_NS, 3]), 0)
    assert late_at_most(rules, work=0, site=0) == ENDLESS_NS
    assert late_at_most(rules, work=0, site=1) == 3
    assert late_at_most(rules, work=1, site=0) == 5
    assert late_at_most(rules, work=1, site=1) == 3
