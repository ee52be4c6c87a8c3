"""Which call sites are corrected, given what the stages found."""

from __future__ import annotations

from collections.abc import Collection
from pathlib import Path

import msgspec
import pytest

from ffm.driver.catalogue import load_catalogue
from ffm.errors import FfmError
from ffm.remedy.correctable import LATE_S, LEAST, late_cost_s
from ffm.remedy.fitness import Fitness, fitness, left
from ffm.remedy.layout import PLAN, PLAN_MAGIC, SITE, constant, declarations, guarded_functions
from ffm.remedy.plan_file import (
    MEMORY_BYTES,
    Correction,
    Planned,
    awaits_clocks,
    closes_host_memory,
    delivers_late,
    write_plan,
)
from ffm.remedy.reasons import LateCostsAsMuch, NeededForMore, OtherAllocation, OtherDestination, WaitsReliedOn
from ffm.remedy.selection import plan
from ffm.report.remedies.uncorrected import by_hand, why_not
from ffm.report.verdict_reasons import WORDS
from ffm.results.documents.analysis import AllocationLink, Analysis
from ffm.results.documents.benefit import Benefit
from ffm.results.documents.site import DownloadUse, Site, Verdict
from ffm.results.documents.stacks import Stack
from ffm.results.vocabulary import Because

UNNECESSARY = Because.NOTHING_RELIES


def verdict(kind: str, occurrences: int, because: Because = UNNECESSARY, **more: int) -> Verdict:
    return Verdict(kind=kind, because=because, occurrences=occurrences, **more)


def site(
    number: int,
    kind: str,
    function: str,
    synchronization: list[Verdict] | None = None,
    transfer: list[Verdict] | None = None,
) -> Site:
    return Site(
        call="call",
        function=function,
        caller="main",
        file="main.cu",
        line=number,
        stack=number,
        kind=kind,
        count=10,
        total_s=1.0,
        wait_s=1.0,
        gap_s=0.0,
        bytes=100,
        problem_count=10,
        synchronization=synchronization or [],
        transfer=transfer or [],
        benefit=Benefit(carry_s=0.5, bound_s=0.5),
    )


def analysis(
    *sites: Site,
    allocations: list[AllocationLink] | None = None,
    origin: str = "ffm",
    followed: Collection[int] | None = None,
) -> Analysis:
    """Return an analysis where the sites `followed`, by default all, send to memory from cudaMallocAsync."""
    destinations = [
        AllocationLink(
            site=number, role="destination", memory="asynchronous", allocation=None, release=None, occurrences=one.count
        )
        for number, one in enumerate(sites)
        if followed is None or number in followed
    ]
    return Analysis(
        stacks=[Stack(key=f"{number:032x}", frames=[]) for number in range(len(sites))],
        application="app",
        origin=origin,
        command=["./app"],
        wall_s=10.0,
        timeline="timeline.arrow",
        sites=list(sites),
        points=[],
        folds=[],
        sequences=[],
        costs=[],
        matching=None,
        allocations=[*(allocations or []), *destinations],
    )


def actions(planned: list[Planned]) -> dict[int, set[str]]:
    names = [name for name in dir(declarations().dlopen(None)) if name.startswith("FFM_REMEDY_")]
    names.remove("FFM_REMEDY_VERSION")
    return {
        one.site: {name.removeprefix("FFM_REMEDY_") for name in names if one.actions & constant(name)}
        for one in planned
    }


def test_synchronizations_are_skipped_where_every_occurrence_was_unnecessary() -> None:
    document = analysis(
        site(0, "synchronization", "cuCtxSynchronize", [verdict("unnecessary", 10)]),
        site(1, "synchronization", "cuCtxSynchronize", [verdict("unnecessary", 9), verdict("required", 1)]),
        site(2, "synchronization", "cuCtxSynchronize", [verdict("unnecessary", 9)]),  # one was not matched
        site(3, "synchronization", "cuStreamSynchronize", [verdict("conditionally unnecessary", 10)]),
        site(4, "synchronization", "cuCtxSynchronize"),
    )
    assert actions(plan(document, {Correction.SKIP})) == {0: {"SKIP"}, 3: {"SKIP"}}


def test_an_order_of_streams_is_kept_where_its_wait_is_removed() -> None:
    order = verdict("required", 4, Because.ORDERS_STREAMS)
    document = analysis(
        site(0, "synchronization", "cuStreamSynchronize", [verdict("unnecessary", 6), order]),
        site(1, "synchronization", "cuStreamSynchronize", [order, verdict("required", 6, Because.TIMING)]),
    )
    assert actions(plan(document, {Correction.SKIP})) == {0: {"SKIP"}}


def test_frees_are_hoisted_with_the_allocations_of_what_they_free() -> None:
    document = analysis(
        site(0, "allocation", "cuMemAlloc_v2"),
        site(1, "free", "cuMemFree_v2", [verdict("unnecessary", 10)]),
        site(2, "allocation", "cuMemAlloc_v2"),
        site(3, "free", "cuMemFree_v2", [verdict("required", 10)]),
        site(4, "allocation", "cuMemAllocHost_v2"),
        site(5, "free", "cuMemFreeHost", [verdict("unnecessary", 10)]),
        allocations=[
            AllocationLink(site=one, role="frees", memory="device", allocation=one - 1, release=one, occurrences=10)
            for one in (1, 3, 5)
        ],
    )
    planned = plan(document, {Correction.HOIST})
    assert actions(planned) == {0: {"POOL_ALLOCATION"}, 1: {"POOL_FREE"}}
    assert [one.corrections for one in planned] == [(), (Correction.HOIST,)]
    assert [closes_host_memory(one) for one in planned] == [False, True]


def test_frees_that_are_needed_now_and_then_are_hoisted_if_what_they_protect_can_be_guarded() -> None:
    def free(number: int, because: Because) -> Site:
        needed = verdict("required", 1, because)
        return site(number, "free", "cuMemFree_v2", [verdict("unnecessary", 9), needed])

    reasons = (Because.RESULT_USED, Because.ORDERS_STREAMS, Because.HOST_TIMER, Because.PRIVATE_CALL)
    document = analysis(
        site(0, "allocation", "cuMemAlloc_v2"),
        *(free(number, reason) for number, reason in enumerate(reasons, 1)),
        allocations=[
            AllocationLink(site=number, role="frees", memory="device", allocation=0, release=number, occurrences=10)
            for number in range(1, 1 + len(reasons))
        ],
    )
    timed = {"POOL_FREE", "CLOCK"}
    assert actions(plan(document, {Correction.HOIST})) == {0: {"POOL_ALLOCATION"}, 1: timed, 2: {"POOL_FREE"}, 3: timed}
    assert fitness(document)[4] == Fitness((), NeededForMore(1, 10, Because.PRIVATE_CALL))


def test_an_upload_may_have_waited_for_its_source_to_be_overwritten() -> None:
    overwritten = verdict("required", 4, Because.SOURCE_OVERWRITTEN)
    used = verdict("required", 4, Because.RESULT_USED)
    document = analysis(
        site(0, "transfer", "cuMemcpyHtoD_v2", [verdict("unnecessary", 6), overwritten]),
        site(1, "transfer", "cuMemcpyHtoD_v2", [verdict("unnecessary", 6), used]),
        site(2, "transfer", "cuMemcpyDtoH_v2", [verdict("unnecessary", 10)]),
        site(3, "transfer", "cuMemcpyHtoDAsync_v2", [verdict("unnecessary", 10)]),
    )
    planned = plan(document, {Correction.ASYNCHRONOUS})
    assert actions(planned) == {0: {"ASYNCHRONOUS", "NO_WAIT", "CLOCK"}, 2: {"ASYNCHRONOUS", "NO_WAIT"}}
    assert all(closes_host_memory(one) for one in planned)


def test_asynchronous_uploads_are_compared_where_that_pays_and_nobody_relies_on_a_wait() -> None:
    again = verdict("no-op", 9, first=1)
    document = analysis(
        site(0, "transfer", "cuMemcpyHtoDAsync_v2", transfer=[again]),
        site(1, "transfer", "cuMemcpyAsync", transfer=[again]),
        site(2, "transfer", "cuMemcpyHtoDAsync_v2_ptsz", [verdict("unnecessary", 10)], [again]),
        site(3, "transfer", "cuMemcpyHtoDAsync_v2", [verdict("required", 10)], [again]),
        site(4, "transfer", "cuMemcpyHtoDAsync_v2", transfer=[again]),
        site(5, "transfer", "cuMemcpyHtoDAsync_v2", transfer=[verdict("needed", 10)]),
        site(6, "transfer", "cuMemcpyHtoDAsync_v2", transfer=[verdict("repeat", 10, first=3)]),
        site(7, "transfer", "cuMemcpyDtoHAsync_v2", transfer=[again]),
    )
    sites = document.sites
    sites[4] = msgspec.structs.replace(sites[4], bytes=10**10)
    planned = plan(document, {Correction.REUSE})
    assert actions(planned) == {0: {"REUSE"}, 1: {"REUSE"}, 2: {"REUSE", "NO_WAIT"}, 6: {"REUSE"}}
    assert [closes_host_memory(one) for one in planned] == [False, False, True, False]
    why = {number: why_not(fit.why_not) for number, fit in fitness(document).items() if fit.why_not}
    assert sorted(why) == [3, 4, 5, 7]
    assert "rely" in why[3]
    assert "cost as much" in why[4]
    assert "not cuMemcpyHtoDAsync_v2" in why[5]


def test_an_asynchronous_upload_may_have_waited_now_and_then() -> None:
    waited = [verdict("unnecessary", 8)]
    document = analysis(
        site(0, "transfer", "cuMemcpyHtoDAsync_v2", waited, [verdict("no-op", 10)]),
        site(1, "transfer", "cuMemcpyHtoDAsync_v2", waited, [verdict("no-op", 9)]),  # the tenth may be unknown
        site(2, "transfer", "cuMemcpyHtoDAsync_v2", [*waited, verdict("required", 1)], [verdict("no-op", 10)]),
    )
    assert actions(plan(document, {Correction.REUSE})) == {0: {"REUSE", "NO_WAIT"}}
    assert [fitness(document)[number].why_not for number in (1, 2)] == [WaitsReliedOn()] * 2


def test_a_download_that_nobody_needs_soon_stays_where_it_saves_next_to_nothing() -> None:
    some = [site(number, "transfer", "cuMemcpyDtoH_v2", [verdict("unnecessary", 10)]) for number in range(2)]
    for number, share in enumerate((1.1 * LEAST, 0.9 * LEAST)):
        always = site(number, "transfer", "cuMemcpyDtoH_v2", [verdict("misplaced", 10, Because.RESULT_USED)])
        benefit = Benefit(carry_s=0.5, bound_s=0.5, replay_s=share * late_cost_s(always))
        some[number] = msgspec.structs.replace(some[number], benefit=benefit)
    document = analysis(*some)
    assert actions(plan(document, {Correction.ASYNCHRONOUS})) == {0: {"ASYNCHRONOUS", "NO_WAIT"}}
    assert fitness(document)[1].why_not == LateCostsAsMuch()


def test_a_download_comes_late_where_some_occurrences_are_needed_if_that_pays() -> None:
    used = verdict("required", 4, Because.RESULT_USED)
    ordered = verdict("required", 4, Because.ORDERS_STREAMS)
    early = verdict("misplaced", 4, Because.RESULT_USED)
    timer = verdict("required", 4, Because.HOST_TIMER)
    unnecessary = verdict("unnecessary", 6)
    counter, doubt = verdict("required", 4, Because.COUNTER_TIMER), verdict("required", 4, Because.MAYBE_TIMER)
    little = Benefit(carry_s=0.5, bound_s=0.5, replay_s=10 * LATE_S)
    some = [
        site(0, "transfer", "cuMemcpyDtoH_v2", [unnecessary, used]),
        site(1, "transfer", "cuMemcpyDtoH_v2", [unnecessary, ordered]),
        site(2, "transfer", "cuMemcpyDtoH_v2", [unnecessary, early]),
        site(3, "transfer", "cuMemcpyDtoH_v2", [unnecessary, timer]),
        site(4, "transfer", "cuMemcpyDtoH_v2", [used, unnecessary]),
        site(5, "transfer", "cuMemcpyDtoHAsync_v2", [unnecessary, used]),
        site(6, "synchronization", "cuCtxSynchronize", [unnecessary, used]),
        site(7, "transfer", "cuMemcpyDtoH_v2", [unnecessary]),  # four were not matched
        site(8, "transfer", "cuMemcpyDtoH_v2", [unnecessary, counter]),
        site(9, "transfer", "cuMemcpyDtoH_v2", [unnecessary, doubt]),
    ]
    some[4] = msgspec.structs.replace(some[4], benefit=little)
    planned = plan(analysis(*some), set(Correction))
    late = {"ASYNCHRONOUS", "NO_WAIT"}
    assert actions(planned) == {0: late | {"CLOCK"}, 1: late, 2: late | {"CLOCK"}, 3: late | {"CLOCK"}}
    assert all(delivers_late(one) for one in planned)


def test_deferring_a_download_costs_most_where_its_data_is_looked_at() -> None:
    timed = site(
        0, "transfer", "cuMemcpyDtoH_v2", [verdict("unnecessary", 9), verdict("required", 1, Because.HOST_TIMER)]
    )

    def cost(untouched: int) -> float:
        use = DownloadUse(occurrences=5, of=10, watch="pages", untouched=untouched)
        return late_cost_s(msgspec.structs.replace(timed, download=use))

    idle = late_cost_s(site(0, "transfer", "cuMemcpyDtoH_v2", [verdict("unnecessary", 10)]))
    assert cost(5) == pytest.approx(idle)
    assert cost(0) == late_cost_s(timed) == pytest.approx(idle / LEAST)
    assert cost(3) == pytest.approx(0.4 * cost(0) + 0.6 * cost(5))


def test_uploads_are_corrected_where_all_of_them_go_to_memory_that_is_followed() -> None:
    some = [
        site(0, "allocation", "cuMemAlloc_v2"),
        site(1, "allocation", "cuMemAllocManaged"),
        *(site(number, "transfer", "cuMemcpyHtoD_v2", [verdict("unnecessary", 10)]) for number in range(2, 6)),
    ]

    def sends(number: int, allocation: int | None, occurrences: int = 10) -> AllocationLink:
        memory = "managed" if allocation == 1 else "device"
        return AllocationLink(
            site=number, role="destination", memory=memory, allocation=allocation, release=None, occurrences=occurrences
        )

    links = [sends(2, 0, 6), sends(2, 0, 4), sends(3, 0, 9), sends(4, 1)]
    document = analysis(*some, allocations=links, followed=())
    assert actions(plan(document, {Correction.ASYNCHRONOUS})) == {2: {"ASYNCHRONOUS", "NO_WAIT"}}
    assert {number: fit.why_not for number, fit in fitness(document).items() if number > 2} == dict.fromkeys(
        (3, 4, 5), OtherDestination()
    )


def test_uploads_and_skipped_synchronizations_deliver_nothing_late() -> None:
    document = analysis(
        site(0, "transfer", "cuMemcpyHtoD_v2", [verdict("unnecessary", 10)]),
        site(1, "synchronization", "cuCtxSynchronize", [verdict("unnecessary", 10)]),
    )
    assert [delivers_late(one) for one in plan(document, set(Correction))] == [False, False]


def test_a_wait_that_a_read_of_a_clock_makes_up_for_is_skipped_where_others_are_not_needed() -> None:
    timer = verdict("required", 4, Because.HOST_TIMER)
    unnecessary, ordered = verdict("unnecessary", 6), verdict("required", 6, Because.ORDERS_STREAMS)
    some = [
        site(0, "synchronization", "cuCtxSynchronize", [unnecessary, timer]),
        site(1, "synchronization", "cuCtxSynchronize", [verdict("required", 10, Because.HOST_TIMER)]),
        site(2, "synchronization", "cuCtxSynchronize", [unnecessary, verdict("required", 4, Because.COUNTER_TIMER)]),
        site(3, "synchronization", "cuCtxSynchronize", [unnecessary, verdict("required", 4, Because.MAYBE_TIMER)]),
        site(4, "synchronization", "cuCtxSynchronize", [timer, ordered]),
        site(5, "synchronization", "cuCtxSynchronize", [verdict("unnecessary", 10)]),
        site(6, "free", "cuMemFree_v2", [unnecessary, timer]),
    ]
    planned = plan(analysis(*some), set(Correction))
    assert actions(planned) == {0: {"SKIP", "CLOCK"}, 5: {"SKIP"}}
    assert [awaits_clocks(one) for one in planned] == [True, False]


def test_what_is_not_corrected_has_a_reason() -> None:
    needed = verdict("required", 4, Because.RESULT_USED)
    timer = verdict("required", 4, Because.COUNTER_TIMER)
    unnecessary = verdict("unnecessary", 6)
    document = analysis(
        site(0, "transfer", "cuMemsetD8_v2", [verdict("unnecessary", 10)]),
        site(1, "synchronization", "cuCtxSynchronize", [unnecessary, needed]),
        site(2, "synchronization", "cuCtxSynchronize", [verdict("misplaced", 10, Because.RESULT_USED)]),
        site(3, "transfer", "cuMemcpyDtoH_v2", [unnecessary, timer]),
        site(4, "transfer", "cuMemcpyDtoHAsync_v2", [verdict("unnecessary", 10)]),
        site(5, "free", "cuMemFree_v2", [verdict("unnecessary", 10)]),
        site(6, "synchronization", "cuCtxSynchronize", [verdict("unnecessary", 9)]),
        site(7, "synchronization", "cuCtxSynchronize", [verdict("unnecessary", 10)]),
        allocations=[
            AllocationLink(site=0, role="destination", memory="managed", allocation=None, release=None, occurrences=10)
        ],
    )
    found = fitness(document)
    reasons = left(document, [])
    assert [word in why_not(reasons[number]) for number, word in enumerate(REASON_WORDS)] == [True] * len(REASON_WORDS)
    assert found[7] == Fitness((Correction.SKIP,), None)
    assert set(left(document, plan(document, {Correction.HOIST}))) == set(range(7))
    assert fitness(analysis(site(0, "other", "cuCtxCreate"), origin="diogenes")) == {}


def test_a_free_says_what_allocates_its_memory_if_that_is_why_it_is_not_corrected() -> None:
    document = analysis(
        site(0, "free", "cuMemFree_v2", [verdict("unnecessary", 10)]),
        site(1, "allocation", "cuMemAllocManaged", []),
        allocations=[AllocationLink(site=0, role="frees", memory="managed", allocation=1, release=0, occurrences=10)],
    )
    assert fitness(document)[0].why_not == OtherAllocation((document.sites[1].call,))


REASON_WORDS = (
    "managed memory",
    "4 of 10 occurrences are needed",
    "moving it requires a change of the source",
    f"4 of 10 occurrences are needed: {WORDS[Because.COUNTER_TIMER]}",
    "not cuMemcpyDtoHAsync_v2",
    "the allocation of the memory that it frees was not observed",
    "1 of 10 occurrences could not be matched",
)
"""Words of the reasons, by site."""


def test_repeated_uploads_are_reused_and_wait_where_that_was_needed() -> None:
    document = analysis(
        site(0, "transfer", "cuMemcpyHtoD_v2", [verdict("unnecessary", 10)]),
        site(1, "transfer", "cuMemcpyHtoD_v2", [verdict("required", 10)], [verdict("copy", 1, first=0)]),
        site(2, "transfer", "cuMemcpyHtoD_v2", [verdict("unnecessary", 10)], [verdict("needed", 10)]),
    )
    assert actions(plan(document, {Correction.REUSE})) == {0: {"REUSE", "NO_WAIT"}, 1: {"REUSE"}}


def test_single_sites_can_be_chosen() -> None:
    sites = [site(number, "synchronization", "cuCtxSynchronize", [verdict("unnecessary", 10)]) for number in range(3)]
    assert set(actions(plan(analysis(*sites), set(Correction), {1}))) == {1}


def test_imported_results_cannot_be_applied() -> None:
    with pytest.raises(FfmError, match="imported from diogenes"):
        plan(analysis(origin="diogenes"), set(Correction))


def test_the_plan_is_sorted_by_key(tmp_path: Path) -> None:
    function = load_catalogue()["cuCtxSynchronize"].index
    sites = [Planned(number, bytes([number]) * 16, function, 4, (Correction.SKIP,)) for number in (3, 1, 2)]
    ordered = write_plan(sites, tmp_path / "plan")
    assert [one.site for one in ordered] == [1, 2, 3]
    written = (tmp_path / "plan").read_bytes()
    assert PLAN.unpack_from(written) == (PLAN_MAGIC, constant("FFM_REMEDY_VERSION"), 3, MEMORY_BYTES)
    assert [SITE.unpack_from(written, PLAN.size + place * SITE.size)[0][0] for place in range(3)] == [1, 2, 3]
    assert declarations().sizeof("ffm_remedy_plan") == PLAN.size
    assert declarations().sizeof("ffm_remedy_site") == SITE.size


def test_sites_that_depend_on_each_other_are_one_unit_paced_by_its_most_frequent_problem() -> None:
    used = verdict("required", 10, Because.RESULT_USED)
    document = analysis(
        site(0, "allocation", "cuMemAlloc_v2"),
        site(1, "free", "cuMemFree_v2", [verdict("unnecessary", 10)]),
        site(2, "transfer", "cuMemcpyHtoD_v2", [used]),
        site(3, "transfer", "cuMemcpyHtoD_v2", [used], [verdict("copy", 10, first=2)]),
        site(4, "synchronization", "cuCtxSynchronize", [verdict("unnecessary", 10)]),
        site(5, "free", "cuMemFree_v2", [verdict("unnecessary", 20)]),
        allocations=[
            AllocationLink(site=free, role="frees", memory="device", allocation=0, release=free, occurrences=10)
            for free in (1, 5)
        ],
    )
    document.sites[5] = msgspec.structs.replace(document.sites[5], count=20)
    planned = {one.site: one for one in plan(document, set(Correction))}
    assert planned[0].unit == planned[1].unit == planned[5].unit
    assert planned[2].unit == planned[3].unit
    assert len({one.unit for one in planned.values()}) == 3
    assert {number: one.pace for number, one in planned.items()} == {0: 0, 1: 0, 2: 0, 3: 10, 4: 10, 5: 20}


def test_units_are_numbered_from_0_in_the_plan(tmp_path: Path) -> None:
    function = load_catalogue()["cuCtxSynchronize"].index
    sites = [
        Planned(number, bytes([number]) * 16, function, 4, (Correction.SKIP,), unit=7 * number) for number in (1, 2)
    ]
    assert [one.unit for one in write_plan(sites, tmp_path / "plan")] == [0, 1]


def test_each_guarded_function_is_named_once() -> None:
    names = guarded_functions()
    assert {"read", "write", "munmap", "execve", "sigaction"} <= set(names)
    assert len(names) == len(set(names))


def test_where_nothing_pays_the_user_is_told_what_the_source_would_save_and_how_to_go_on() -> None:
    everything = Benefit(carry_s=0.2, bound_s=0.3, replay_s=0.25)
    document = msgspec.structs.replace(analysis(), everything=everything)
    assert f"0.250 of {document.wall_s:.3f} s" in by_hand(document, [])
    assert "--" not in by_hand(document, [])
    assert "--skip-syncs or --reuse-uploads" in by_hand(document, [Correction.SKIP, Correction.REUSE])
