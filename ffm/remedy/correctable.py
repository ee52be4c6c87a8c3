"""What the verdicts on a site allow corrections to do there, and what that costs a call.

These functions see one site at a time; `ffm.remedy.selection` chooses among all sites.
"""

from __future__ import annotations

from collections.abc import Callable

from ffm.driver.catalogue import DriverFunction, load_catalogue
from ffm.driver.vocabulary import Direction, Kind, Memory, Shape
from ffm.results.documents.site import Site, Verdict
from ffm.results.vocabulary import Because

UNNECESSARY = ("unnecessary", "conditionally unnecessary")
REPEATED = ("no-op", "repeat", "copy")


def _names(fits: Callable[[DriverFunction], bool]) -> frozenset[str]:
    return frozenset(function.name for function in load_catalogue().functions if fits(function))


def _transfers(*directions: Direction, asynchronous: bool) -> frozenset[str]:
    return _names(
        lambda function: (
            function.kind is Kind.TRANSFER
            and function.shape is Shape.PLAIN
            and function.direction in directions
            and function.asynchronous == asynchronous
        )
    )


# Names of driver functions, as `Site.function` has them.
ALLOCATIONS = _names(lambda f: (f.kind, f.memory, f.shape) == (Kind.ALLOCATION, Memory.DEVICE, Shape.PLAIN))
FREES = _names(lambda f: (f.kind, f.memory, f.shape) == (Kind.FREE, Memory.DEVICE, Shape.PLAIN))
OTHER_FREES = _names(lambda f: f.kind is Kind.FREE and f.memory is not Memory.DEVICE)
SETS = _names(lambda f: f.kind is Kind.SET)
UPLOADS = _transfers(Direction.HOST_TO_DEVICE, asynchronous=False)
ASYNCHRONOUS_UPLOADS = _transfers(Direction.HOST_TO_DEVICE, Direction.GENERIC, asynchronous=True)
DOWNLOADS = _transfers(Direction.DEVICE_TO_HOST, asynchronous=False)

LATE_S, LATE_BYTE_S = 60e-6, 0.3e-9
"""Seconds that deferring a download costs a call whose result is used at once, per call and per byte: its pages are
closed and opened, a fault is handled, the GPU writes a word, and closed pages are written one by one. Twice the cost
measured on the virtual GPU (2-core Xeon VM).
"""

LEAST = 0.1
"""The share of that cost that a call counts whose result nobody looks at, or only after another wait. It is delivered
at a wait that the program makes anyway, or never, at little cost; but a site that saves almost nothing is better left
alone.
"""

COMPARE_S, COMPARE_BYTE_S = 5e-6, 0.1e-9
"""Seconds of CPU time that comparing an upload with the device's content costs per call, and per byte, which is hashed.
An asynchronous upload from pinned memory may cost the CPU less than that.
"""


def never_needed(site: Site) -> bool:
    """Return whether every occurrence of the site waited for nothing, or only so that work on another stream comes
    later. The device keeps that order when a wait is removed (`native/correction/order/order.h`).
    """
    return _all(site, _needs_nothing)


def _needs_nothing(verdict: Verdict) -> bool:
    return verdict.kind in UNNECESSARY or verdict.because is Because.ORDERS_STREAMS


def timed_actions(site: Site) -> list[str]:
    """Return the action for waits that the next read of a clock may rely on. What is needed for its data may be needed
    for timing, too: a verdict has one reason.
    """
    return [] if never_needed(site) else ["CLOCK"]


def can_be_skipped(site: Site) -> bool:
    """Return whether an explicit synchronization can return at once: no occurrence was needed, or, where some were
    unnecessary, the others only for timing.
    """
    if site.kind != "synchronization":
        return False
    some = any(verdict.kind in UNNECESSARY for verdict in site.synchronization)
    timed = _all(site, lambda verdict: _needs_nothing(verdict) or verdict.because is Because.HOST_TIMER)
    return never_needed(site) or (some and timed)


def _all(site: Site, good: Callable[[Verdict], bool]) -> bool:
    seen = sum(verdict.occurrences for verdict in site.synchronization if good(verdict))
    return seen == site.count > 0 and all(good(verdict) for verdict in site.synchronization)


def can_be_staged(site: Site) -> bool:
    """Return whether a transfer can do without its wait, or wait later. An upload's wait may also have protected its
    source from being overwritten: staging copies the bytes first.
    """

    def staged(verdict: Verdict) -> bool:
        return verdict.kind in UNNECESSARY or verdict.because is Because.SOURCE_OVERWRITTEN

    if site.function in UPLOADS:
        return _all(site, staged)
    return site.function in DOWNLOADS and can_come_late(site) and pays(site)


GUARDED = (
    Because.RESULT_USED,
    Because.RESULT_USED_UNSEEN,
    Because.SOURCE_OVERWRITTEN,
    Because.SOURCE_OVERWRITTEN_UNSEEN,
    Because.ORDERS_STREAMS,
)
"""Needs that a wait at the first use satisfies: memory is closed until the GPU is done with it, and the device keeps
streams in order.
"""


def needs_more(verdict: Verdict) -> bool:
    """Return whether occurrences are needed for something that waiting later does not satisfy, such as a timer that
    nobody sees read.
    """
    return verdict.kind not in UNNECESSARY and verdict.because not in (*GUARDED, Because.HOST_TIMER)


def can_come_late(site: Site) -> bool:
    """Return whether a download or a free can wait at the first use of what it protects, or when the program reads a
    clock.
    """
    return _all(site, lambda verdict: not needs_more(verdict))


def pays(site: Site) -> bool:
    """Return whether a download is expected to save more than deferring it costs."""
    return site.staged_s > late_cost_s(site)


def late_cost_s(site: Site) -> float:
    """Return the seconds that deferring a site's downloads costs."""
    share = LEAST + (1 - LEAST) * _looked_at(site)
    return share * (LATE_S * site.count + LATE_BYTE_S * site.bytes)


def _looked_at(site: Site) -> float:
    """Return the share of a site's downloads that are delivered because the CPU looks at them. None are where other
    waits stay that deliver them.
    """
    if never_needed(site):
        return 0.0
    use = site.download
    return 1 - use.untouched / use.occurrences if use is not None and use.occurrences else 1.0


def repeats(site: Site) -> bool:
    """Return whether a site was seen to send bytes that the device already holds."""
    return any(verdict.kind in REPEATED for verdict in site.transfer)


def no_wait_counts(site: Site) -> bool:
    """Return whether nothing relies on waits of asynchronous uploads: they did not wait, or no wait was needed. An
    upload from pageable memory may be "synchronous with respect to host" (CUDA Runtime API, "API synchronization
    behavior"). Occurrences with a verdict on what they carry, but none on a wait, did not wait.
    """
    matched = sum(verdict.occurrences for verdict in site.transfer) == site.count
    idle = matched and all(_needs_nothing(verdict) for verdict in site.synchronization)
    return not site.synchronization or never_needed(site) or idle


def waits_idly(site: Site) -> bool:
    """Return whether a site was seen to wait, and nothing relied on it."""
    some = bool(site.synchronization) and site.function in ASYNCHRONOUS_UPLOADS
    return never_needed(site) or (some and no_wait_counts(site))


def pays_to_compare(site: Site) -> bool:
    """Return whether a site's asynchronous uploads are expected to save more than comparing them costs."""
    return site.staged_s > COMPARE_S * site.count + COMPARE_BYTE_S * site.bytes


def can_be_reused(site: Site) -> bool:
    """Return whether an upload can be replaced by bytes that the device already holds."""
    if site.function in ASYNCHRONOUS_UPLOADS:
        return repeats(site) and no_wait_counts(site) and pays_to_compare(site)
    return site.function in UPLOADS and repeats(site)


def repeated_sites(site: Site) -> list[int]:
    """Return other sites whose uploads this one repeats: the cache must hold them."""
    return [verdict.first for verdict in site.transfer if verdict.first is not None and verdict.kind in REPEATED]
