"""What a stage asks of the collector, besides the trace of operations."""

from __future__ import annotations

from enum import IntFlag


class Mode(IntFlag):
    """The flags `FFM_MODE_*` of `ffm/instrument/native/collector/modes.h`."""

    NONE = 0
    CONTENTS = 1
    """Hash what transfers carry."""
    WATCH = 2
    """Watch the host memory that transfers write or read."""
    PLAN = 4
    """Watch only the transfers whose stacks are in the plan."""
    HOST = 8
    """Record where the pageable host memory of transfers comes from."""
    GPU_TIMES = 16
    """Time the work that is enqueued on the GPU."""
    NO_ORDINARY = 32
    """Trust the user that no kernel uses ordinary host memory by its address."""
    CHOSEN = 64
    """With a plan, do everything else for the planned transfers only, too."""
    SAMPLES = 128
    """Sample what threads do between driver calls."""
    NAMES = 256
    """Record devices and the names of kernels."""
    LIVES = 512
    """Record who starts and joins threads, and who lets others go on."""
