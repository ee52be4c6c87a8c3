"""Which planned corrections are expected to save more than they cost.

A unit (sites that are corrected together) costs what its calls take: a fence on the device for each removed wait, a
hash and a copy of the bytes that it sends, and the waits of reused uploads on which something relies. In place of a
reused upload the device copies the bytes within its memory, and does so once more to keep them. Pinned staging memory
is paid for once, for all that use it, and so is getting into the program. A unit saves as much as the whole plan would
save less without it: of two waits that follow each other, neither saves anything alone.

A unit with many calls is compared while the program runs (`native/correction/foundation/trials.h`), which ends what
does not pay off. A unit with few calls is not, so if its estimate is wrong, all its cost is lost. Where that would be
noticed, the lower end of the estimate must exceed the cost.

Getting into the program and its threads cannot be undone, either. So the plan's saving must exceed that cost even in
the worse half of all cases, on average: at the midpoint between the estimate and its lower end.

It does not count against corrections that the user names: somebody who asks for one wants to see what it does, even on
a run that is too short to gain from it.
"""

from __future__ import annotations

from collections.abc import Callable, Collection
from dataclasses import dataclass, field

from ffm.errors import FfmError
from ffm.instrument import library
from ffm.instrument.pinning import least_pinning_s, pinning_s
from ffm.remedy.correctable import ASYNCHRONOUS_UPLOADS, COMPARE_S, DOWNLOADS, REPEATED, UPLOADS, late_cost_s
from ffm.remedy.layout import constant, costs
from ffm.remedy.plan_file import MEMORY_BYTES, Correction, Planned
from ffm.remedy.reasons import DoesNotPay, Reason, TooLarge
from ffm.results.documents.analysis import Analysis
from ffm.results.documents.benefit import Benefit
from ffm.results.documents.site import Site
from ffm.results.stored import Results, benefit_of_correcting

CALL_S = 2e-6
"""Seconds for recognizing a call and leaving a fence in place of its wait: twice what `benchmarks/remedy.py` measures
on the virtual GPU.
"""

ENTERING_S = 0.014
"""Seconds that a program takes longer because it is corrected at all, however little it calls the driver: it is held
and let go, its driver's code is changed, and what was put into it ends with it. The most that `benchmarks/remedy.py`
measured, from 7 ms on (2-core Xeon VM in use).
"""

THREAD_S = 2.2e-4
"""Seconds that a program takes longer for each further thread that calls the driver: in each, what unwinds its stacks
takes memory of its own, a quarter of a MiB, and gives it back. Twice what `benchmarks/programs/short_lived.cu`
loses (2-core AMD EPYC VM in use).
"""

LEAST_STAGING_BYTES = 4 << 20
"""The first piece of staging memory (`native/correction/order/staging.c`). Each further one is twice as large, or as
often as it takes for two transfers.
"""

EXAMINED = 30
"""Most units whose saving is estimated one by one, costliest first: each estimate is a replay of the run."""


@dataclass(frozen=True, slots=True)
class Machine:
    """Seconds per byte."""

    hash_s: float
    copy_s: float
    pin_s: float
    device_copy_s: float
    """Within the device's memory."""


@dataclass(frozen=True, slots=True)
class Costs:
    """Seconds that a plan costs at most."""

    calls_s: dict[int, float]
    """By site, for all its calls."""
    rest_s: float
    """For staging memory and for getting into the program."""
    device_s: dict[int, float] = field(default_factory=dict)
    """By site, the part of `calls_s` that the device takes to copy bytes which it holds already."""

    @property
    def most_s(self) -> float:
        """All of it."""
        return sum(self.calls_s.values()) + self.rest_s


@dataclass(frozen=True, slots=True)
class Worth:
    """The planned sites that are expected to pay off, and for each problem site of the others why it is left alone."""

    planned: list[Planned]
    left: dict[int, Reason]
    costs: Costs
    """Of the planned sites."""

    def corrections(self) -> list[Correction]:
        """Return the corrections of the planned sites, each once, in the order in which they are listed everywhere."""
        return [one for one in Correction if any(one in site.corrections for site in self.planned)]


Gain = Callable[[Collection[int]], Benefit]
"""What fixing these sites together saves."""


def machine_of(analysis: Analysis) -> Machine:
    """Measure this machine. What the program's own pinned memory cost, if it was recorded, is what pinning costs. What
    copying on the device costs was measured with the run; if it could not be, it counts as a copy in host memory, which
    is slower.

    Raises:
        FfmError: There is not enough memory to measure with.
    """
    measured = costs(library.native_library("libffm_remedy.so"))
    try:
        pin_s = pinning_s(((site.function, site.bytes, site.total_s) for site in analysis.sites), least_pinning_s())
    except OSError:
        measured = None
    if measured is None:
        raise FfmError("there is too little memory to measure what corrections cost: free some 100 MiB.")
    hash_s, copy_s = measured
    return Machine(hash_s, copy_s, pin_s, device_copy_s=analysis.device_copy_byte_ns / 1e9 or copy_s)


def worthwhile_in(
    results: Results, planned: list[Planned], *, named: bool = False, memory_bytes: int = MEMORY_BYTES
) -> Worth:
    """Leave out of a plan for a measured program what is not expected to pay off on this machine.

    `named` says that the user named the corrections or the sites, and `memory_bytes` what corrections may take.
    """
    questions = min(len({site.unit for site in planned}), EXAMINED)

    def gain(sites: Collection[int]) -> Benefit:
        return benefit_of_correcting(results, sites, questions=questions)

    machine, entering_s = machine_of(results.document), 0.0 if named else None
    return worthwhile(planned, results.document, gain, machine, entering_s, memory_bytes)


def entering_cost_s(analysis: Analysis) -> float:
    """Return what correcting a program at all costs: getting into it, and into each of its threads."""
    processes = [] if analysis.run is None else analysis.run.processes
    return ENTERING_S + THREAD_S * sum(max(process.threads - 1, 0) for process in processes)


def worthwhile(
    planned: list[Planned],
    analysis: Analysis,
    gain: Gain,
    machine: Machine,
    entering_s: float | None = None,
    memory_bytes: int = MEMORY_BYTES,
) -> Worth:
    """Leave out of a plan what is not expected to pay off; `entering_s` is what counts of `entering_cost_s`, by default
    all of it, and `memory_bytes` how much memory corrections may take.
    """
    counts_s = entering_cost_s(analysis) if entering_s is None else entering_s
    return _Plan(planned, analysis, gain, machine).worth(counts_s, memory_bytes)


class _Plan:
    """A plan that loses units until the rest pays."""

    def __init__(self, planned: list[Planned], analysis: Analysis, gain: Gain, machine: Machine) -> None:
        self._all, self._sites, self._gain, self._machine = planned, analysis.sites, gain, machine
        self._wall_s = analysis.wall_s
        self._entering_s = entering_cost_s(analysis)
        self._units = {
            unit: [site for site in planned if site.unit == unit] for unit in {site.unit for site in planned}
        }
        self._cost_s = {unit: self._cost_of(unit) for unit in self._units}
        self._why: dict[int, Reason] = {}

    def worth(self, entering_s: float, memory_bytes: int) -> Worth:
        for unit in list(self._units):
            self._drop_if_too_large(unit, memory_bytes)
        for unit in list(self._units):
            self._drop_unless({unit}, self._at_best_s(unit), best=True)
        for unit in [unit for unit in self._units if self._must_be_certain(unit)]:
            self._drop_unless({unit}, self._at_least_s(unit), certain=True)
        staged = {unit for unit in self._units if self._staging_bytes(unit)}
        if staged:
            self._drop_unless(staged, self._without_s(staged))
        for unit in sorted(self._units, key=lambda unit: -self._cost_s[unit])[:EXAMINED]:
            self._drop_unless({unit}, self._without_s({unit}))
        self._drop_unless_all_pay(entering_s)
        planned = [site for site in self._all if site.unit in self._units]
        calls_s = {site.site: self._call_cost_s(site, self._sites[site.site]) for site in planned}
        device_s = {site.site: self._device_s(self._sites[site.site]) for site in planned if _reuses(site)}
        return Worth(planned, self._why, Costs(calls_s, self._pinning_s(self._units) + self._entering_s, device_s))

    def _drop_if_too_large(self, unit: int, memory_bytes: int) -> None:
        """Drop a unit with uploads that are too large to be staged, or kept: each would be hashed in vain."""
        uploads = [site for site in self._units[unit] if self._sites[site.site].function in _STAGED_UPLOADS]
        largest = max((self._mean_bytes(site) for site in uploads if site.actions & _staged()), default=0)
        if largest > 0 and _piece_bytes(largest) > memory_bytes:
            self._why |= dict.fromkeys(self._problems([unit]), TooLarge(largest, memory_bytes))
            del self._units[unit]

    def _mean_bytes(self, planned: Planned) -> int:
        site = self._sites[planned.site]
        return site.bytes // max(site.count, 1)

    def _drop_unless_all_pay(self, entering_s: float) -> None:
        if not self._units:
            return
        gain, units = self._gain(self._problems(self._units)), set(self._units)
        self._drop_unless(units, gain.expected_s, entering_s)
        if self._units and entering_s > 0:
            worse_s = (gain.expected_s + (gain.low_s or 0.0)) / 2
            self._drop_unless(units, worse_s, entering_s, certain=True)

    def _must_be_certain(self, unit: int) -> bool:
        """Return whether a unit that does not pay would cost noticeably much, and would not be found out."""
        calls = max(site.pace for site in self._units[unit])
        cost_s = self._cost_s[unit] + self._pinning_s({unit})
        return calls < constant("FFM_TRIAL_LEAST_CALLS") and cost_s * constant("FFM_TRIAL_NOTICEABLE") > self._wall_s

    def _drop_unless(
        self,
        units: Collection[int],
        saved_s: float,
        entering_s: float = 0.0,
        *,
        certain: bool = False,
        best: bool = False,
    ) -> None:
        """Drop the units together if they do not save more than they cost together."""
        cost_s = sum(self._cost_s[unit] for unit in units) + self._pinning_s(units) + entering_s
        if saved_s > cost_s:
            return
        together, entering = len(units) > 1, entering_s > 0
        why = DoesNotPay(saved_s, cost_s, together=together, certain=certain, entering=entering, best=best)
        for unit in units:
            self._why |= dict.fromkeys(self._problems([unit]), why)
            del self._units[unit]

    def _problems(self, units: Collection[int]) -> list[int]:
        return [site.site for unit in units for site in self._units[unit] if site.corrections]

    def _without_s(self, units: Collection[int]) -> float:
        """Return how much less the plan saves without these units."""
        rest = [unit for unit in self._units if unit not in units]
        saved_s = self._gain(self._problems(self._units)).expected_s
        return saved_s - (self._gain(self._problems(rest)).expected_s if rest else 0.0)

    def _at_best_s(self, unit: int) -> float:
        benefits = [self._sites[site].benefit for site in self._problems([unit])]
        return sum(max(benefit.expected_s, benefit.bound_s, benefit.high_s or 0.0) for benefit in benefits)

    def _at_least_s(self, unit: int) -> float:
        problems = self._problems([unit])
        least_s = sum(self._sites[site].benefit.low_s or 0.0 for site in problems)
        if any(self._sites[site].function in DOWNLOADS for site in problems):
            # Fixed in the source, they need no copying that they do when they are corrected.
            least_s = min(least_s, self._gain(problems).low_s or 0.0)
        return least_s

    def _cost_of(self, unit: int) -> float:
        return sum(self._call_cost_s(site, self._sites[site.site]) for site in self._units[unit])

    def _call_cost_s(self, planned: Planned, site: Site) -> float:
        def does(action: str) -> bool:
            return bool(planned.actions & constant(f"FFM_REMEDY_{action}"))

        cost_s = CALL_S * site.count
        if does("REUSE"):
            cost_s += (COMPARE_S - CALL_S) * site.count + self._reuse_s(site)
        elif does("ASYNCHRONOUS") and site.function in UPLOADS:
            cost_s += self._machine.copy_s * site.bytes
        if does("REUSE") and not does("NO_WAIT"):
            cost_s += site.wait_s  # fixed in the source, it goes with the upload
        if does("ASYNCHRONOUS") and site.function in DOWNLOADS:
            cost_s += late_cost_s(site)
        return cost_s

    def _reuse_s(self, site: Site) -> float:
        """Return the seconds that a site's bytes cost when they are compared, and those that are new staged and kept.

        The CPU hashes while the device may be idle, and the device copies while the CPU may wait for it, so both count.
        """
        machine, sent_bytes = self._machine, site.bytes * _share_sent(site)
        new_s = machine.copy_s + machine.hash_s  # hashed again as it is sent
        return machine.hash_s * site.bytes + self._device_s(site) + new_s * sent_bytes

    def _device_s(self, site: Site) -> float:
        return self._machine.device_copy_s * site.bytes

    def _staging_bytes(self, unit: int) -> int:
        """Return the staging memory that a unit needs."""
        staged = _staged()
        return max(
            (_piece_bytes(self._mean_bytes(site)) for site in self._units[unit] if site.actions & staged), default=0
        )

    def _pinning_s(self, units: Collection[int]) -> float:
        """Return what staging memory costs beyond what the rest of the plan pays for."""
        rest = max((self._staging_bytes(unit) for unit in self._units if unit not in units), default=0)
        mine = max((self._staging_bytes(unit) for unit in units), default=0)
        return self._machine.pin_s * max(mine - rest, 0)


_STAGED_UPLOADS = UPLOADS | ASYNCHRONOUS_UPLOADS


def _reuses(planned: Planned) -> bool:
    return bool(planned.actions & constant("FFM_REMEDY_REUSE"))


def _share_sent(site: Site) -> float:
    """Return the share of a site's uploads that are not known to repeat others."""
    repeated = sum(verdict.occurrences for verdict in site.transfer if verdict.kind in REPEATED)
    return 1 - min(repeated / max(site.count, 1), 1.0)


def _staged() -> int:
    """Return the actions that stage transfers."""
    return constant("FFM_REMEDY_ASYNCHRONOUS") | constant("FFM_REMEDY_REUSE")


def _piece_bytes(transfer_bytes: int) -> int:
    """Return the piece of staging memory that transfers of this size get."""
    size = LEAST_STAGING_BYTES
    while size < 2 * transfer_bytes:
        size *= 2
    return size
