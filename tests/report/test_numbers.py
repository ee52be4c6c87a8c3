"""Numbers are written in one unit, with enough decimals for the run."""

from __future__ import annotations

import pytest

from ffm.report.numbers import Scale, percent, plural, ranges, rests_on, size
from ffm.results.documents.benefit import Basis, Benefit


@pytest.mark.parametrize(
    ("wall", "seconds", "text"),
    [
        (1360.908, 155.785, "155.785 s"),
        (1360.908, 0.0, "0.000 s"),
        (3.0, 0.01234, "0.0123 s"),
        (0.05, 0.000125, "0.000125 s"),
        (0.0, 1.5, "1.500 s"),
    ],
)
def test_seconds_keep_a_ten_thousandth_of_the_run_visible(wall: float, seconds: float, text: str) -> None:
    assert Scale(wall).seconds(seconds) == text


def test_a_saving_has_its_share_of_the_run() -> None:
    saving = Scale(1360.908).saving(Benefit(carry_s=137.136, bound_s=155.785))
    assert percent(saving.carry_percent) == "10.08 %"
    assert percent(saving.bound_percent) == "11.45 %"
    assert (saving.seconds("carry"), saving.seconds("bound")) == (137.136, 155.785)


@pytest.mark.parametrize(("at_most_s", "shown"), [(0.1, False), (0.1005, False), (0.111, True)])
def test_what_runs_differ_by_anyway_shows_no_row(at_most_s: float, shown: bool) -> None:
    """Of a run of 10 s, which two runs differ by 0.1 s of."""
    saving = Scale(10.0).saving(Benefit(carry_s=0.0, bound_s=0.0, replay_s=0.0, low_s=0.0, high_s=at_most_s))
    assert Scale(10.0).shows(saving, "replay") is shown


def test_a_run_without_time_has_no_shares() -> None:
    assert Scale(0.0).share(1.0) == 0.0


@pytest.mark.parametrize(
    ("numbers", "text"),
    [([], ""), ([4], "4"), ([3, 1, 2], "1-3"), ([1, 3, 4, 7], "1, 3-4, 7"), ([2, 2, 3], "2-3")],
)
def test_ranges(numbers: list[int], text: str) -> None:
    assert ranges(numbers) == text


@pytest.mark.parametrize(("value", "text"), [(0, "0 B"), (1023, "1023 B"), (1536, "1.50 KiB"), (3 << 40, "3.00 TiB")])
def test_sizes(value: int, text: str) -> None:
    assert size(value) == text


def test_plurals() -> None:
    assert (plural(1, "row"), plural(0, "row"), plural(1200, "row")) == ("1 row", "0 rows", "1,200 rows")


@pytest.mark.parametrize(
    ("basis", "text"),
    [
        (Basis(measured=None), "the CPU's times alone: carry and bound"),
        (
            Basis(measured=0.5, differs=0.1, differs_s=0.0012),
            "the GPU's times (50 % measured by events, the rest inferred from the ends of waits) and allows for "
            "runs that differ by 10 % of the saving and 1.2 ms",
        ),
        (
            Basis(measured=1.0, differs=0.1, pinned_bytes=2_500_000, pinning_s=0.0004),
            "the GPU's times, measured by events, and allows for runs that differ by 10 % of the saving, with 0.0004 s "
            "for pinning 2.38 MiB subtracted",
        ),
        (
            Basis(measured=0.0, differs=1.0),
            "the GPU's times, inferred from the ends of waits, and allows for runs that differ by the whole saving "
            "(measure again on a quieter machine)",
        ),
    ],
)
def test_what_an_interval_rests_on_is_said(basis: Basis, text: str) -> None:
    assert rests_on(basis) == text


@pytest.mark.parametrize(
    ("measured", "share"), [(0.997, "more than 99 %"), (0.994, "99 %"), (0.011, "1 %"), (0.001, "less than 1 %")]
)
def test_share_that_is_not_all_is_not_said_to_be_all(measured: float, share: str) -> None:
    assert f"({share} measured by events, the rest inferred" in rests_on(Basis(measured=measured))
