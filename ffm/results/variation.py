"""How certain the times of a run are: how much runs of a program vary, as its stages show."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

from ffm.results.documents.analysis import StageCost
from ffm.results.documents.run import Run

if TYPE_CHECKING:
    from ffm.model.device import DeviceWork

DIFFERS = 0.1
"""Runs differ, and an estimate is based on one, so the interval is widened by at least this share on either side. On
the samples, estimates miss the measured saving by about that much (`benchmarks/accuracy.py`).
"""

COSTLY_TRACING = 1.2
"""If stage 2 takes this many times the program's time, its times are less certain, and results say so."""

MOST = 0.5
"""The share of a run that its waits must span for their span to stand for it."""

EXPECTED = 1.96 * math.sqrt(2) / 1.128
"""How much further apart than two runs were, two others are in at most 95 of 100 cases: two values are 1.128 standard
deviations apart on average (NIST/SEMATECH e-Handbook of Statistical Methods, 6.3.2.1), and the difference of two varies
by the square root of two of them.
"""

VARIES = 0.01
"""Two runs of a program on an undisturbed machine differ by about this share, as was seen on real GPUs, even if those
that are compared do not.
"""


@dataclass(frozen=True, slots=True)
class Variation:
    """How certain the times of a run are."""

    run_s: float = 0.0
    """By how much runs differ: stage 2 without its probes and the bare run do, and so does a saving that is measured.
    So does how long they waited for a processor. A program whose threads outnumber the processors waits for itself, in
    each run about as long: that is part of its times, and makes none of them less certain.
    """
    share: float = DIFFERS
    """Of an estimate: what is due to differences between runs and to tracing."""
    compared_s: float = math.inf
    """How long the bare run took, as far as it was compared."""
    delayed_s: float = 0.0
    """How much longer the traced run waited for a processor than another stage's run did. Others took it from its
    threads by chance, perhaps in the very waits that a fix removes, and it is not certain that they do so again.
    """
    slower: float = 1.0
    """How many times as long as the bare run the traced one took without its probes, from one of the first waits to the
    last; at least 1, and 1 if that is not known. Savings are of the bare run, whose calls took that much less time.
    """

    @property
    def of_saving(self) -> float:
        """The share by which what a fix saves differs between runs.

        A run that is slower by some share is so in the calls that a fix changes, too, and saves more by that share.
        What else makes a run longer, the fixed run has as well, so that it is no part of what is saved.
        """
        return min(self.share + self.run_s / self.compared_s, 1.0)

    @classmethod
    def of(cls, costs: list[StageCost], probes_s: float, work: DeviceWork | None) -> Variation:
        """Return the variation of a run; with nothing known of its stages, the least.

        `probes_s` is how much longer the probes of stage 2 made it, over all of its threads; `work` as for `Estimates`.
        """
        stages = {cost.stage: cost for cost in costs}
        if not stages.keys() >= {"baseline", "tracing"}:
            return cls()
        threads = 1 if work is None else max(len(work.process_of_thread), 1)
        bare, traced = stages["baseline"], stages["tracing"]
        bare_s, traced_s = comparable_s(bare, traced)
        differ_s, delayed_s = traced_s - probes_s / threads - bare_s, traced.delayed_s - bare.delayed_s
        # A run that waited longer for a processor is longer by about that, which counts once.
        undelayed_s = min(abs(differ_s), abs(differ_s - delayed_s))
        run_s = undelayed_s + abs(delayed_s)
        if spans_compare(bare, traced):
            last = stages.get("sync-use")
            spans_s = [bare_s, bare_s + differ_s]
            if last is not None and last.waiting_span_s is not None:
                # Stage 4 has probes, too, whose time is unknown: it shows a difference if it is shorter all the same.
                spans_s.append(min(last.waiting_span_s, min(spans_s)))
            run_s = max(run_s, EXPECTED * (max(spans_s) - min(spans_s)))
        ratio = traced_s / bare_s if bare_s > 0 else 1.0
        share = DIFFERS + (1 - 1 / ratio if ratio > COSTLY_TRACING else 0.0)
        by_chance_s = delayed_by_chance_s(costs)
        if bare_s <= 0:
            return cls(max(run_s, VARIES * bare.wall_s), share, delayed_s=by_chance_s)
        slower = 1 + max(differ_s, 0.0) / bare_s if spans_compare(bare, traced) else 1.0
        return cls(max(run_s, VARIES * bare.wall_s), share, bare_s, by_chance_s, slower)


NOTHING_KNOWN = Variation()
"""The least variation, of a run of whose stages nothing is known."""


def delayed_by_chance_s(costs: list[StageCost]) -> float:
    """Return `Variation.delayed_s`; 0 without a traced run."""
    traced = next((cost for cost in costs if cost.stage == "tracing"), None)
    return 0.0 if traced is None else traced.delayed_s - min(cost.delayed_s for cost in costs)


def comparable_s(bare: Run | StageCost, traced: Run | StageCost) -> tuple[float, float]:
    """Return how long stages 1 and 2 ran: from one of their first waits to the last, where that is most of the run, as
    getting into the program takes longer in stage 2 and says nothing of the rest; otherwise in all.
    """
    if not spans_compare(bare, traced):
        return bare.wall_s, traced.wall_s
    assert bare.waiting_span_s is not None and traced.waiting_span_s is not None
    return bare.waiting_span_s, traced.waiting_span_s


def spans_compare(bare: Run | StageCost, traced: Run | StageCost) -> bool:
    """Return whether the spans of the waits of both runs stand for them."""
    if bare.waiting_span_s is None or traced.waiting_span_s is None:
        return False
    return min(bare.waiting_span_s, traced.waiting_span_s) >= MOST * bare.wall_s
