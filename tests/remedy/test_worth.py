"""Corrections are left out where they are not expected to save more than they cost."""

from __future__ import annotations

from collections.abc import Collection

import msgspec
import pytest

from ffm.remedy.plan_file import Correction
from ffm.remedy.selection import plan
from ffm.remedy.worth import CALL_S, ENTERING_S, THREAD_S, Machine, Worth, machine_of, worthwhile
from ffm.report.remedies.uncorrected import why_not
from ffm.results.documents.analysis import Analysis
from ffm.results.documents.benefit import Benefit
from ffm.results.documents.run import ProcessRecord, Run
from ffm.results.vocabulary import Because
from tests.measured_run import a_run
from tests.remedy.test_selection import analysis, site, verdict

MACHINE = Machine(hash_s=1e-10, copy_s=1e-10, pin_s=1e-9, device_copy_s=1e-11)
FREE_OF_COST = Machine(0.0, 0.0, 0.0, 0.0)
PLENTY = 1 << 40
"""Bytes of memory that corrections may take where that is not what a test is about."""


def certainly(seconds: float) -> Benefit:
    """What saves that in any case."""
    return Benefit(carry_s=seconds, bound_s=seconds, low_s=seconds, high_s=seconds)


def wait(number: int, saves_s: float, bound_s: float = 1.0) -> msgspec.Struct:
    one = site(number, "synchronization", "cuCtxSynchronize", [verdict("unnecessary", 10)])
    return msgspec.structs.replace(one, benefit=Benefit(carry_s=saves_s, bound_s=bound_s))


def upload(number: int, *, count: int, bytes_each: int) -> msgspec.Struct:
    one = site(number, "transfer", "cuMemcpyHtoD_v2", [verdict("unnecessary", count)])
    return msgspec.structs.replace(
        one, count=count, bytes=count * bytes_each, benefit=Benefit(carry_s=count, bound_s=count)
    )


def judged(document: Analysis, saves: dict[frozenset[int], float], machine: Machine = MACHINE) -> Worth:
    def gain(sites: Collection[int]) -> Benefit:
        return certainly(saves[frozenset(sites)])

    return worthwhile(plan(document, set(Correction)), document, gain, machine, memory_bytes=PLENTY)


def kept(worth: Worth) -> set[int]:
    return {one.site for one in worth.planned}


def test_what_cannot_pay_even_at_best_is_left_alone() -> None:
    document = analysis(wait(0, 0.0, bound_s=9 * CALL_S), wait(1, 0.5))
    worth = judged(document, {frozenset({1}): 0.5})
    assert kept(worth) == {1}
    assert set(worth.left) == {0}
    assert why_not(worth.left[0]) == "correcting it would save less than 0.0001 s and cost less than 0.0001 s"
    large = analysis(upload(0, count=1, bytes_each=1 << 30))
    slow = Machine(hash_s=0.0, copy_s=1e-8, pin_s=0.0, device_copy_s=0.0)
    assert why_not(judged(large, {}, slow).left[0]) == "correcting it would save at most 1.0000 s and cost 10.7374 s"


def test_what_a_plan_costs_is_that_of_the_sites_that_are_left() -> None:
    document = analysis(wait(0, 0.0, bound_s=9 * CALL_S), wait(1, 0.5))
    assert judged(document, {frozenset({1}): 0.5}).costs.most_s == pytest.approx(10 * CALL_S + ENTERING_S)


def test_waits_that_only_save_together_are_corrected_together() -> None:
    """Of two waits in a row, removing one moves the waiting into the other."""
    document = analysis(wait(0, 0.0), wait(1, 0.0))
    assert kept(judged(document, {frozenset({0, 1}): 0.5, frozenset({0}): 0.0, frozenset({1}): 0.0})) == {0, 1}


def test_a_plan_must_save_more_than_getting_into_the_program_costs() -> None:
    for saved_s, expected in ((ENTERING_S / 2, set()), (2 * ENTERING_S, {0, 1})):
        document = analysis(wait(0, saved_s / 2), wait(1, saved_s / 2))
        saves = {frozenset({0, 1}): saved_s, frozenset({0}): saved_s / 2, frozenset({1}): saved_s / 2}
        assert kept(judged(document, saves)) == expected


def of_threads(*threads: int) -> Run:
    """A run of processes with so many threads."""
    processes = [
        ProcessRecord(process_id=number, executable="a", rank=None, recording="r", threads=some, operations=1, lost=0)
        for number, some in enumerate(threads)
    ]
    return a_run(wall_s=10.0, processes=processes)


def test_a_plan_must_save_more_than_getting_into_all_threads_costs() -> None:
    entering_s = ENTERING_S + (100 + 400) * THREAD_S
    document = msgspec.structs.replace(analysis(wait(0, 1.0)), run=of_threads(101, 401))
    for saved_s, expected in ((0.9 * entering_s, set()), (1.1 * entering_s, {0})):
        assert kept(judged(document, {frozenset({0}): saved_s})) == expected
    assert judged(document, {frozenset({0}): 1.0}).costs.most_s == pytest.approx(10 * CALL_S + entering_s)


def test_named_corrections_are_applied_to_runs_too_short_to_gain_from_them() -> None:
    document = analysis(wait(0, ENTERING_S / 2))
    planned = plan(document, set(Correction))
    half = certainly(ENTERING_S / 2)
    named = worthwhile(planned, document, lambda sites: half, MACHINE, entering_s=0.0)
    assert (kept(named), named.corrections()) == ({0}, [Correction.SKIP])
    assert kept(worthwhile(planned, document, lambda sites: half, MACHINE)) == set()


def test_no_remedy_is_worth_naming_that_does_not_pay_even_without_getting_into_the_program() -> None:
    document = analysis(wait(0, ENTERING_S / 2))
    nothing = certainly(0.0)
    planned = plan(document, set(Correction))
    assert worthwhile(planned, document, lambda sites: nothing, MACHINE, entering_s=0.0).corrections() == []


@pytest.mark.parametrize(
    ("expected_s", "low_s", "pays"),
    [(1.5, 0.0, False), (1.5, 0.75, True), (2.5, 0.0, True)],
    ids=["may cost", "pays for certain", "may save much more than it costs"],
)
def test_what_getting_into_a_program_costs_is_paid_in_the_worse_half_of_cases(
    expected_s: float, low_s: float, pays: bool
) -> None:
    """Times are those of getting into it, which cannot be taken back."""
    document = analysis(wait(0, 0.5))
    expected_s, low_s = ENTERING_S * expected_s, ENTERING_S * low_s
    gain = Benefit(carry_s=expected_s, bound_s=expected_s, low_s=low_s, high_s=expected_s)
    worth = worthwhile(plan(document, set(Correction)), document, lambda sites: gain, MACHINE, memory_bytes=PLENTY)
    assert kept(worth) == ({0} if pays else set())
    assert (0 in worth.left and "cannot be taken back" in why_not(worth.left[0])) == (not pays)


def test_a_wait_without_which_the_plan_saves_as_much_is_left_alone() -> None:
    document = analysis(wait(0, 0.0), wait(1, 0.5))
    saves = {frozenset({0, 1}): 0.5, frozenset({0}): 0.0, frozenset({1}): 0.5}
    assert kept(judged(document, saves)) == {1}


@pytest.mark.parametrize(("count", "pays"), [(1, False), (1000, True)])
def test_staging_must_save_more_than_pinning_costs(count: int, pays: bool) -> None:
    """Each upload saves 10 ms; pinning twice its 8 MiB costs 17 ms."""
    document = analysis(upload(0, count=count, bytes_each=8 << 20))
    worth = judged(document, {frozenset({0}): 0.01 * count})
    assert kept(worth) == ({0} if pays else set())


@pytest.mark.parametrize(
    ("calls", "low_s", "kept_sites"),
    [(15, 0.0, set()), (15, 0.5, {0}), (16, 0.0, {0})],
    ids=["may cost", "pays for certain", "is compared"],
)
def test_what_is_called_too_seldom_to_be_compared_must_pay_for_certain(
    calls: int, low_s: float, kept_sites: set[int]
) -> None:
    """Copying 2 GiB into staging memory takes 0.2 s of a run of 10 s."""
    one = upload(0, count=calls, bytes_each=(2 << 30) // calls)
    one = msgspec.structs.replace(one, benefit=Benefit(carry_s=1.0, bound_s=1.0, low_s=low_s, high_s=2.0))
    worth = judged(
        analysis(one), {frozenset({0}): 1.0}, Machine(hash_s=1e-10, copy_s=1e-10, pin_s=0.0, device_copy_s=0.0)
    )
    assert kept(worth) == kept_sites
    assert (0 in worth.left and "called too seldom" in why_not(worth.left[0])) == (not kept_sites)


def test_pinning_is_paid_once() -> None:
    """Three uploads save 80 ms each, and share a staging memory that costs 134 ms."""
    document = analysis(*(upload(number, count=1, bytes_each=64 << 20) for number in range(3)))
    saves = {frozenset(which): 0.08 * len(which) for which in ({0, 1, 2}, {0, 1}, {0, 2}, {1, 2})}
    assert kept(judged(document, saves)) == {0, 1, 2}


def test_hashing_must_save_more_than_it_costs() -> None:
    """1 GiB in each of ten uploads takes a second to hash; its upload from pageable memory needs its wait."""
    used = verdict("required", 10, Because.RESULT_USED)
    one = site(0, "transfer", "cuMemcpyHtoD_v2", [used], [verdict("no-op", 10, first=0)])
    document = analysis(msgspec.structs.replace(one, bytes=10 << 30, wait_s=0.0))
    assert kept(judged(document, {frozenset({0}): 0.5})) == set()
    assert kept(judged(document, {frozenset({0}): 0.5}, FREE_OF_COST)) == {0}


@pytest.mark.parametrize(("saved_s", "kept_sites"), [(1.9, set()), (2.3, {0})])
def test_the_device_copies_what_it_holds_instead_of_an_upload(saved_s: float, kept_sites: set[int]) -> None:
    """Hashing 10 GiB takes 1.1 s, and copying it on the device as long again."""
    one = site(0, "transfer", "cuMemcpyHtoDAsync_v2", [], [verdict("repeat", 10, first=0)])
    one = msgspec.structs.replace(one, bytes=10 << 30, wait_s=0.0, benefit=certainly(3.0))
    machine = Machine(hash_s=1e-10, copy_s=1.0, pin_s=0.0, device_copy_s=1e-10)
    assert kept(judged(analysis(one), {frozenset({0}): saved_s}, machine)) == kept_sites


def test_what_is_sent_for_reuse_is_copied_twice_more_and_hashed_twice() -> None:
    """Of ten uploads of 1 GiB, five repeat nothing."""
    some = [verdict("repeat", 5, first=0), verdict("needed", 5)]
    one = site(0, "transfer", "cuMemcpyHtoDAsync_v2", [], some)
    one = msgspec.structs.replace(one, bytes=10 << 30, wait_s=0.0, benefit=certainly(100.0))
    machine = Machine(hash_s=2e-10, copy_s=3e-10, pin_s=0.0, device_copy_s=1e-10)
    costs = judged(analysis(one), {frozenset({0}): 100.0}, machine).costs
    assert costs.calls_s[0] == pytest.approx((10 << 30) * (2e-10 + 1e-10) + (5 << 30) * (2e-10 + 3e-10), rel=1e-3)
    assert costs.device_s[0] == pytest.approx((10 << 30) * 1e-10)


def test_what_a_device_copy_costs_was_measured_with_the_run() -> None:
    measured = msgspec.structs.replace(analysis(), device_copy_byte_ns=0.5)
    assert machine_of(measured).device_copy_s == 0.5e-9
    unknown = machine_of(analysis())
    assert unknown.device_copy_s == unknown.copy_s


@pytest.mark.parametrize(("kind", "kept_sites"), [("required", set()), ("unnecessary", {0})])
def test_a_reused_upload_whose_wait_stays_does_not_save_it(kind: str, kept_sites: set[int]) -> None:
    """Without the upload and its wait, the run would take 0.5 s less, of which 0.6 s are spent waiting."""
    waits = verdict(kind, 10, Because.HOST_TIMER)
    one = site(0, "transfer", "cuMemcpyHtoD_v2", [waits], [verdict("no-op", 10, first=0)])
    document = analysis(msgspec.structs.replace(one, wait_s=0.6))
    assert kept(judged(document, {frozenset({0}): 0.5}, FREE_OF_COST)) == kept_sites


def test_the_programs_own_pinned_memory_tells_what_pinning_costs() -> None:
    pinned = site(0, "allocation", "cuMemAllocHost_v2")
    slow = analysis(msgspec.structs.replace(pinned, bytes=1 << 20, total_s=1.0))
    machine = machine_of(slow)
    assert machine.pin_s == 1.0 / (1 << 20)
    assert 0 < machine_of(analysis()).pin_s < machine.pin_s
    assert machine.hash_s > 0 and machine.copy_s > 0


def test_uploads_for_which_there_is_no_memory_are_left_alone() -> None:
    document = analysis(upload(0, count=1, bytes_each=200 << 20), upload(1, count=1, bytes_each=100 << 20))

    def gain(sites: Collection[int]) -> Benefit:
        return certainly(float(len(sites)))

    def judge(memory_bytes: int) -> Worth:
        planned = plan(document, set(Correction))
        return worthwhile(planned, document, gain, FREE_OF_COST, memory_bytes=memory_bytes)

    worth = judge(256 << 20)
    assert kept(worth) == {1}
    assert why_not(worth.left[0]) == (
        "an upload takes 200.00 MiB, and corrections would hold two of them: more than the 256.00 MiB that they may "
        "take (--memory)"
    )
    assert kept(judge(255 << 20)) == set()
    assert kept(judge(512 << 20)) == {0, 1}


def test_what_uploads_nothing_needs_no_memory() -> None:
    document = analysis(wait(0, 1.0))
    planned = plan(document, set(Correction))
    assert kept(worthwhile(planned, document, lambda sites: certainly(1.0), MACHINE, memory_bytes=0)) == {0}
