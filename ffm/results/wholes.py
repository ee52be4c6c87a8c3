"""Makes fixing a whole save no less than fixing one of its parts alone, and a part no more, by any estimator.

Fixing a fold includes fixing any one of its sites. So the fold saves at least what that site alone saves, and so do all
problems together. An estimator may say otherwise: the published Diogenes averages over calls, `carry` can lose a wait
past which another one was moved, and ranks without a problem of a group do not limit what that group saves.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable

import msgspec

from ffm.results.documents.benefit import Benefit


def at_least(whole: Benefit, parts: Iterable[Benefit]) -> Benefit:
    """Return a whole's benefit, raised to that of its best part by each estimator, and at each end of the interval.

    A whole that was not replayed is raised by `carry` and `bound` alone.
    """
    for part in parts:
        whole = _limited(max, whole, part)
    return whole


def at_most(part: Benefit, whole: Benefit) -> Benefit:
    """Return a part's benefit, lowered to that of the whole by each estimator, and at each end of the interval."""
    return _limited(min, part, whole)


def _limited(choose: Callable[[float, float], float], benefit: Benefit, limit: Benefit) -> Benefit:
    """Return a benefit whose seconds are chosen from its own and those of a limit, unless one of them is unknown."""

    def known(own: float | None, other: float | None) -> float | None:
        return own if own is None or other is None else choose(own, other)

    return msgspec.structs.replace(
        benefit,
        carry_s=choose(benefit.carry_s, limit.carry_s),
        bound_s=choose(benefit.bound_s, limit.bound_s),
        replay_s=known(benefit.replay_s, limit.replay_s),
        low_s=known(benefit.low_s, limit.low_s),
        high_s=known(benefit.high_s, limit.high_s),
    )
