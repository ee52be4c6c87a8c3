"""When threads waited for what others let go (`ffm.model.device.LockWaits`)."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from ffm.model.device import LockWaits
from ffm.model.timeline import Timeline


def lock_moments(timeline: Timeline, locks: LockWaits) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return when each wait began, and when the other thread let it go on; nanoseconds on the timeline's clock."""
    end = timeline.start + timeline.duration
    since = end[locks.row] + np.minimum(locks.after, timeline.gap[locks.row])
    return since, end[locks.by] + np.minimum(locks.released, timeline.gap[locks.by])
