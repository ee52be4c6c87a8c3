"""Makes fixing a whole save no less than fixing one of its parts alone, by any estimator.

Fixing a fold includes fixing any one of its sites. So the fold saves at least what that site alone saves, and so do all
problems together. An estimator may say otherwise: the published Diogenes averages over calls, `carry` can lose a wait
past which another one was moved, and ranks without a problem of a group do not limit what that group saves.
"""

from __future__ import annotations

from collections.abc import Iterable

import msgspec

from ffm.results.documents.benefit import Benefit


def at_least(whole: Benefit, parts: Iterable[Benefit]) -> Benefit:
    """Return a whole's benefit, raised to that of its best part by each estimator, and at each end of the interval.

    A whole that was not replayed is raised by `carry` and `bound` alone.
    """
    for part in parts:
        whole = msgspec.structs.replace(
            whole,
            carry_s=max(whole.carry_s, part.carry_s),
            bound_s=max(whole.bound_s, part.bound_s),
            replay_s=_raised(whole.replay_s, part.replay_s),
            low_s=_raised(whole.low_s, part.low_s),
            high_s=_raised(whole.high_s, part.high_s),
        )
    return whole


def at_most(part: Benefit, whole: Benefit) -> Benefit:
    """Return a part's benefit, lowered to that of the whole by each estimator, and at each end of the interval."""
    return msgspec.structs.replace(
        part,
        carry_s=min(part.carry_s, whole.carry_s),
        bound_s=min(part.bound_s, whole.bound_s),
        replay_s=_lowered(part.replay_s, whole.replay_s),
        low_s=_lowered(part.low_s, whole.low_s),
        high_s=_lowered(part.high_s, whole.high_s),
    )


def _raised(whole: float | None, part: float | None) -> float | None:
    return whole if whole is None or part is None else max(whole, part)


def _lowered(part: float | None, whole: float | None) -> float | None:
    return part if whole is None or part is None else min(part, whole)
