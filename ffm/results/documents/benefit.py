"""What a fix would save, as documents store it."""

from __future__ import annotations

from ffm.results.documents.fields import Count, Record, Seconds, Share


class Basis(Record, frozen=True, kw_only=True):
    """What an interval is based on."""

    measured: Share | None
    """How much of the GPU's time was measured by events; the rest is inferred from the ends of waits. None if the
    interval comes from the CPU's times alone, by carry and bound.
    """
    differs: Share = 0.0
    """The share of the saving that it allows for differences between runs,"""
    differs_s: Seconds = 0.0
    """and the seconds in addition."""
    pinned_bytes: Count = 0
    """Memory that is pinned for the fix,"""
    pinning_s: Seconds = 0.0
    """and what that costs, which is subtracted."""


class Benefit(Record, frozen=True, kw_only=True):
    """Seconds of the run that a fix would save, by each estimator (docs/architecture.md#the-model), and an interval.

    For a run of several processes they are the run's, which ends when all have ended, not a sum over processes.
    """

    carry_s: Seconds
    bound_s: Seconds
    replay_s: Seconds | None = None
    """None if nothing is known about the GPU (imported results), or if it was not worth a replay."""
    low_s: Seconds | None = None
    high_s: Seconds | None = None
    """The smallest and largest saving, given what is unknown; None in documents without an interval."""
    basis: Basis | None = None
    """None without an interval."""

    def __post_init__(self) -> None:
        """Refuse half an interval.

        Raises:
            ValueError: Only one end of the interval is there.
        """
        if (self.low_s is None) != (self.high_s is None):
            raise ValueError("an interval needs both low_s and high_s")

    @property
    def expected_s(self) -> float:
        """The seconds that are shown and sorted by unless requested otherwise: by replay, or else by carry."""
        return self.carry_s if self.replay_s is None else self.replay_s
