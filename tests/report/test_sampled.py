"""How the time between two calls is shared among the functions in which it was sampled."""

from __future__ import annotations

import numpy as np
import pytest

from ffm.results.documents.measured import Sampled, SampledPlace
from ffm.results.waiting.sampled import SampledFunction, SampledPair, Split, sampled_pairs

SAMPLE_NS = 4_000_000
SOLVE, CHECK = SampledFunction("solve", "als.cu"), SampledFunction("check", "als.cu")


def test_samples_are_added_up_by_function_and_line() -> None:
    pairs = sampled_pairs(
        Sampled(
            places=[
                SampledPlace(function="solve", file="/src/als.cu", line=7),
                SampledPlace(function="solve", file="/src/als.cu", line=9),
                SampledPlace(function="code in libown.so"),
            ],
            before=[0, 0, 0, 2],
            after=[1, 1, 1, -1],
            place=[0, 1, 2, 0],
            beside=[0, 0, 0, 0],
            nanoseconds=[10, 20, 30, 40],
        )
    )
    assert pairs[0, 1].functions == {SOLVE: {7: 10, 9: 20}, SampledFunction("code in libown.so", ""): {0: 30}}
    assert pairs[2, None].functions == {SOLVE: {7: 40}}


def test_what_samples_do_not_stand_for_is_kept_apart() -> None:
    pair = SampledPair(SAMPLE_NS, {SOLVE: {7: 300 * SAMPLE_NS}, CHECK: {9: 100 * SAMPLE_NS}})
    shares, rest = pair.shares(1000 * SAMPLE_NS)
    assert shares == {SOLVE: 0.3, CHECK: 0.1}
    assert rest == pytest.approx(0.6)


def test_what_chance_can_make_is_not_kept_apart() -> None:
    """Of 400 samples, 20 are one standard error."""
    pair = SampledPair(SAMPLE_NS, {SOLVE: {7: 300 * SAMPLE_NS}, CHECK: {9: 100 * SAMPLE_NS}})
    for total in (380, 400, 430):
        shares, rest = pair.shares(total * SAMPLE_NS)
        assert (shares[SOLVE], shares[CHECK], rest) == (0.75, 0.25, 0)


def test_without_samples_a_long_time_is_waiting_and_a_short_one_says_nothing() -> None:
    assert SampledPair(SAMPLE_NS).shares(100 * SAMPLE_NS) == ({}, 1.0)
    assert SampledPair(SAMPLE_NS).shares(SAMPLE_NS) == ({}, 0.0)


def test_waiting_while_other_threads_work_belongs_to_their_functions() -> None:
    """The thread worked for a fifth of the time, and others for three fifths, while it waited."""
    beside = {SOLVE: {7: 200 * SAMPLE_NS}, CHECK: {9: 400 * SAMPLE_NS}}
    pair = SampledPair(SAMPLE_NS, {SOLVE: {7: 200 * SAMPLE_NS}}, beside)
    shares, rest = pair.shares(1000 * SAMPLE_NS)
    assert shares == pytest.approx({SOLVE: 0.4, CHECK: 0.4})
    assert rest == pytest.approx(0.2)
    shares, rest = pair.shares(500 * SAMPLE_NS)
    assert (shares, rest) == (pytest.approx({SOLVE: 0.6, CHECK: 0.4}), 0)
    assert pair.lines(SOLVE) == {7: 400 * SAMPLE_NS}


def test_cells_share_out_to_regions() -> None:
    split = Split.of([(0, 0, 1.0), (1, 0, 0.25), (1, 1, 0.75)])
    assert split.spread(np.array([10.0, 100.0]), 2).tolist() == [35, 75]
    assert split.bounded(np.array([10.0, 40.0]), np.array([10.0, 100.0]), 2).tolist() == [35, 40]
    assert split.of_regions([1], 2).tolist() == [0, 0.75]
    assert split.largest(3).tolist() == [0, 1, -1]
    assert split.renumbered(np.array([-1, 0])).region.tolist() == [0]
