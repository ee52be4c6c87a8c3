"""Format numbers in the same units everywhere: seconds, percent of the run, counts, bytes."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass
from itertools import pairwise
from typing import Literal

from ffm.errors import FfmError
from ffm.results.documents.analysis import Analysis
from ffm.results.documents.benefit import Basis, Benefit
from ffm.results.variation import VARIES

Estimator = Literal["replay", "carry", "bound"]
ESTIMATORS: tuple[Estimator, ...] = ("carry", "bound")
"""The estimators that every document has."""
ESTIMATOR_MEANINGS: dict[Estimator, str] = {
    "replay": "the run simulated again with the fix, on the CPU and on the GPU as far as waits reveal it",
    "carry": "what later waits cannot absorb; unused savings are carried forward (dissertation, Figure 5.1)",
    "bound": "the estimate of the published Diogenes: at most the CPU's own time after the operations",
}

HIDDEN_BELOW_PERCENT = 0.1
"""Rows that save less than this share of the run are counted instead of shown, on every screen, as in Diogenes."""


@dataclass(frozen=True, slots=True)
class Saving:
    """Seconds that a fix would save and their share of the run's wall time, by each estimator.

    `low_s` and `high_s` are the interval of the default estimator. Values that the document does not contain are None.
    For operations not worth a replay, the replay value is that of carry. `at_most` means that the seconds are an upper
    limit, not an estimate.
    """

    carry_s: float
    carry_percent: float
    bound_s: float
    bound_percent: float
    replay_s: float | None = None
    replay_percent: float | None = None
    low_s: float | None = None
    high_s: float | None = None
    rests_on: str = ""
    at_most: bool = False

    def seconds(self, estimator: Estimator) -> float:
        """Return the seconds by one estimator."""
        if estimator == "replay" and self.replay_s is not None:
            return self.replay_s
        return self.bound_s if estimator == "bound" else self.carry_s

    def percent(self, estimator: Estimator) -> float:
        """Return the share of the run by one estimator, 0 to 100."""
        if estimator == "replay" and self.replay_percent is not None:
            return self.replay_percent
        return self.bound_percent if estimator == "bound" else self.carry_percent


@dataclass(frozen=True, slots=True)
class Scale:
    """How a run's times are written: all with the same number of decimals."""

    wall_s: float

    @property
    def decimals(self) -> int:
        """As many decimals as 0.01 % of the run needs: at least three (milliseconds), at most nine."""
        if self.wall_s <= 0:
            return 3
        return min(9, max(3, math.ceil(-math.log10(self.wall_s * 1e-4))))

    def seconds(self, seconds: float) -> str:
        """`155.785 s`."""
        return f"{seconds:.{self.decimals}f} s"

    def share(self, seconds: float) -> float:
        """Return the percentage of the run's wall time."""
        return 100 * seconds / self.wall_s if self.wall_s > 0 else 0.0

    def describe(self, saving: Saving, estimator: Estimator) -> str:
        """`0.120 s (1.20 %)`, or `at most 0.120 s (1.20 %)`."""
        text = f"{self.seconds(saving.seconds(estimator))} ({percent(saving.percent(estimator))})"
        return f"at most {text}" if saving.at_most else text

    def share_beyond_variation(self, high_s: float) -> float:
        """Return the percentage up to which an interval says that is saved, without its room for what any two runs
        differ by, which nothing saves.
        """
        return self.share(high_s) - 100 * VARIES

    def most_percent(self, saving: Saving, estimator: Estimator) -> float:
        """Return the largest share of the run that the estimators shown, or replay's interval, say is saved."""
        shares = [saving.percent(name) for name in shown_estimators(estimator)]
        if estimator != "replay":
            return max(shares)
        high_s = saving.high_s or 0.0
        return max(*shares, self.share(high_s) if saving.at_most else self.share_beyond_variation(high_s))

    def shows(self, saving: Saving, estimator: Estimator) -> bool:
        """Return whether a row with this saving is shown; the others are counted, unless all are requested."""
        return self.most_percent(saving, estimator) >= HIDDEN_BELOW_PERCENT

    def known_saving(self, benefit: Benefit | None) -> Saving | None:
        """Return `saving`, or None if the benefit is unknown."""
        return None if benefit is None else self.saving(benefit)

    def saving(self, benefit: Benefit, *, at_most: bool = False) -> Saving:
        """Return a benefit with its share of the run."""
        carry, bound, replay = benefit.carry_s, benefit.bound_s, benefit.replay_s
        return Saving(
            carry,
            self.share(carry),
            bound,
            self.share(bound),
            replay,
            None if replay is None else self.share(replay),
            benefit.low_s,
            benefit.high_s,
            "" if benefit.basis is None else rests_on(benefit.basis),
            at_most,
        )


def saved_together(
    everything: Saving | None, scale: Scale, estimator: Estimator, without_equal_bytes: Saving | None = None
) -> str:
    """Return `Fixing everything would save 1.483 s (46.70 %), from 0.533 to 2.377 s.`, or nothing if that is unknown or
    too little for the screens' decimals; a second sentence says how much of it does not rest on equal bytes alone.
    """
    if everything is None or scale.seconds(everything.seconds(estimator)) == scale.seconds(0.0):
        return ""
    text = f"Fixing everything would save {scale.describe(everything, estimator)}"
    if estimator != "replay" or everything.low_s is None or everything.high_s is None:
        text += f", by {estimator}."
    else:
        text += f", from {everything.low_s:.{scale.decimals}f} to {scale.seconds(everything.high_s)}."
    if without_equal_bytes is None:
        return text
    return (
        f"{text} Without uploads of equal bytes from different places in host memory, which may be different data: "
        f"{scale.describe(without_equal_bytes, estimator)}."
    )


def rests_on(basis: Basis) -> str:
    """Return what an interval is based on, in words."""
    if basis.measured is None:
        words = "the CPU's times alone: carry and bound"
    else:
        if basis.measured == 0:
            times = "the GPU's times, inferred from the ends of waits,"
        elif basis.measured == 1:
            times = "the GPU's times, measured by events,"
        else:
            share = _part_of_all(100 * basis.measured)
            times = f"the GPU's times ({share} measured by events, the rest inferred from the ends of waits)"
        saving = "the whole saving" if basis.differs >= 1 else f"{100 * basis.differs:.0f} % of the saving"
        always = f" and {1000 * basis.differs_s:.1f} ms" if basis.differs_s > 0 else ""
        again = " (measure again on a quieter machine)" if basis.differs >= 1 else ""
        words = f"{times} and allows for runs that differ by {saving}{always}{again}"
    if basis.pinned_bytes == 0:
        return words
    return f"{words}, with {basis.pinning_s:.4f} s for pinning {size(basis.pinned_bytes)} subtracted"


def _part_of_all(percent: float) -> str:
    """Return a share that is neither nothing nor all, in words that do not round it to either."""
    if percent < 1:
        return "less than 1 %"
    return "more than 99 %" if percent >= 99.5 else f"{percent:.0f} %"


def chosen_estimator(analysis: Analysis, wanted: Estimator | None) -> Estimator:
    """Return the estimator that a view shows: the requested one, else the document's own.

    Raises:
        FfmError: A replay is requested from a document that has none.
    """
    own: Estimator = "replay" if analysis.estimator == "replay" else "carry"
    if wanted == "replay" and own != "replay":
        raise FfmError(
            f"the results of {analysis.application} contain no trace to replay; use --estimator carry or bound."
        )
    return wanted or own


def shown_estimators(estimator: Estimator) -> tuple[Estimator, ...]:
    """Return the estimators whose columns a table shows: replay comes with its interval, carry with bound."""
    return ("replay",) if estimator == "replay" else ESTIMATORS


def percent(value: float) -> str:
    """`11.45 %`."""
    return f"{value:.2f} %"


def count(value: int) -> str:
    """`85,000`."""
    return f"{value:,}"


def plural(value: int, noun: str) -> str:
    """`1 site`, `2,000 sites`."""
    return f"{value:,} {noun}" + ("" if value == 1 else "s")


def hidden_rows(number: int, noun: str, estimator: Estimator, *, shown_by: str = "--all") -> str:
    """Return how many rows `Scale.shows` left out, and why: replay goes by the upper end of a saving's interval."""
    they = "it saves" if number == 1 else "they save"
    if estimator == "replay":
        chance = 100 * VARIES
        why = f"{they} at most {percent(HIDDEN_BELOW_PERCENT + chance)}, and runs differ by {chance:.0f} %"
    else:
        why = f"{they} less than {percent(HIDDEN_BELOW_PERCENT)} of the run"
    return f"{plural(number, noun)} hidden (see {shown_by}): {why}"


def size(value: int) -> str:
    """Bytes with a binary prefix: `1.50 MiB`."""
    amount = float(value)
    for unit in ("B", "KiB", "MiB", "GiB"):
        if amount < 1024:
            return f"{value} B" if unit == "B" else f"{amount:.2f} {unit}"
        amount /= 1024
    return f"{amount:.2f} TiB"


def ranges(numbers: Iterable[int]) -> str:
    """`1-3, 7, 9-10` for ascending numbers."""
    ordered = sorted(set(numbers))
    if not ordered:
        return ""
    starts = [ordered[0], *(after for before, after in pairwise(ordered) if after != before + 1)]
    ends = [*(before for before, after in pairwise(ordered) if after != before + 1), ordered[-1]]
    return ", ".join(f"{a}" if a == b else f"{a}-{b}" for a, b in zip(starts, ends, strict=True))
