"""What correcting cost is taken from the corrected runs where they show it."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from ffm.driver.catalogue import load_catalogue
from ffm.remedy.correct import Comparison
from ffm.remedy.layout import Counted, Tally, Trial, constant
from ffm.remedy.measured_costs import Paid, paid
from ffm.remedy.plan_file import Correction, Planned
from ffm.remedy.worth import Costs

COSTS = Costs({7: 0.25, 8: 0.5}, 1.0)
"""At most, of two sites, and of the rest."""


def planned(site: int, unit: int, function: str, action: str) -> Planned:
    actions = constant(f"FFM_REMEDY_{action}")
    return Planned(site, bytes(16), load_catalogue()[function].index, actions, (Correction.SKIP,), unit)


def wait(site: int, unit: int) -> Planned:
    return planned(site, unit, "cuCtxSynchronize", "SKIP")


def process(*units: tuple[Tally, float], copied: int = 0, nothing: int = 0) -> Counted:
    """A process with a site in each unit, and how many of its reused uploads were copied and how many dropped."""
    return Counted(
        {"uploads_copied": copied, "uploads_nothing": nothing},
        [tally for tally, _ in units],
        [Trial(True, 0, None, spent_s) for _, spent_s in units],
    )


def compared(sites: list[Planned], *runs: Sequence[Counted]) -> Comparison:
    return Comparison([], [], sites, [list(run) for run in runs], [])


CORRECTED = Tally(calls=10, corrected=8, waited=0, original=2)


def test_a_unit_costs_what_its_corrected_calls_took_in_the_middle_of_the_runs() -> None:
    runs = [[process((CORRECTED, seconds), (CORRECTED, 0.125))] for seconds in (0.03125, 0.0625, 3.0)]
    assert paid(COSTS, compared([wait(7, 0), wait(8, 1)], *runs)) == Paid(0.5 + 0.1875, 1.0 + 0.1875, 0.1875)


def test_processes_are_added() -> None:
    run = [process((CORRECTED, 0.0625)), process((CORRECTED, 0.125))]
    assert paid(COSTS, compared([wait(7, 0)], run)) == Paid(0.5 + 0.1875, 1.0 + 0.1875, 0.1875)


@pytest.mark.parametrize(
    ("site", "tally"),
    [
        (wait(7, 0), Tally(calls=10, corrected=8, waited=1, original=1)),
        (wait(7, 0), Tally(calls=10, corrected=7, waited=0, original=2)),
        (planned(7, 0, "cuMemcpyDtoH_v2", "ASYNCHRONOUS"), CORRECTED),
    ],
    ids=["some waited", "some were not corrected", "deliveries wait"],
)
def test_calls_that_wait_do_not_show_what_correcting_costs(site: Planned, tally: Tally) -> None:
    assert paid(COSTS, compared([site], [process((tally, 9.0))])) == Paid(0.5 + 0.125, 1.0 + 0.25, 0.125)


@pytest.mark.parametrize(("copied", "nothing", "device_s"), [(10, 0, 0.125), (5, 5, 0.0625), (0, 10, 0.0), (0, 0, 0.0)])
def test_copies_on_the_device_in_place_of_uploads_cost_beside_the_calls(
    copied: int, nothing: int, device_s: float
) -> None:
    costs = Costs({7: 0.25}, 1.0, device_s={7: 0.125})
    site = planned(7, 0, "cuMemcpyHtoDAsync_v2", "REUSE")
    in_calls_s = 0.0625 + device_s
    runs = compared([site], [process((CORRECTED, 0.0625), copied=copied, nothing=nothing)])
    assert paid(costs, runs) == Paid(0.5 + in_calls_s, 1.0 + in_calls_s, in_calls_s)
