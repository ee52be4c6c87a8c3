"""Whether a correction pays off shows while the program runs, at little cost (`correction/foundation/trials.h`)."""

from __future__ import annotations

import subprocess
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import cffi
import pytest

from ffm.remedy.layout import DECLARATIONS
from tests.native.layers import NATIVE, includes_of

PROGRAM = Path(__file__).parent / "programs" / "trials.c"
DECLARED = """
typedef struct { uint64_t between, original, corrected, left_behind, noise, disturbed, disturbance,
                 every, long_original, long_corrected, changes, then_original, then_corrected,
                 burst, pause, seed; } behaviour;
void simulate(const ffm_remedy_site *plan, const behaviour *behaviours, uint32_t calls, uint32_t second_ends,
              ffm_remedy_tally *tallies, ffm_remedy_trial *trials);
"""
CALLS = 1000
US = 1000


@dataclass(frozen=True)
class Site:
    """Times in microseconds: `left_behind` is what a corrected call leaves for the next original one to wait for."""

    original: int
    corrected: int
    between: int = 1000
    left_behind: int = 0
    noise: int = 0
    disturbed: int = 0
    """The number of the call before which another program takes `disturbance`."""
    disturbance: int = 0
    every: int = 0
    """One of so many calls is long: `long_original` or `long_corrected`."""
    long_original: int = 0
    long_corrected: int = 0
    changes: int = 0
    """The number of the call from which on its calls take `then_original` or `then_corrected`."""
    then_original: int = 0
    then_corrected: int = 0
    burst: int = 0
    """The program pauses for `pause` after so many calls."""
    pause: int = 0
    seed: int = 1
    """Of the noise."""


@dataclass(frozen=True)
class Found:
    corrects: bool
    pairs: int
    slower: float
    original: int
    """Calls that were left as they are."""


Simulate = Callable[..., list[Found]]


@pytest.fixture(scope="module")
def simulate(tmp_path_factory: pytest.TempPathFactory) -> Simulate:
    """Let a program of one or two sites run on a simulated clock."""
    library = tmp_path_factory.mktemp("trials") / "trials.so"
    subprocess.run(
        [
            "gcc", "-std=c11", "-D_GNU_SOURCE", "-O1", "-g", "-fPIC", "-shared", "-Wall", "-Wextra", "-Werror",
            *includes_of("correction/foundation"), "-o", str(library), str(PROGRAM),
            *(str(NATIVE / "correction" / "foundation" / name) for name in ("pairs.c", "timed_block.c", "trials.c")),
        ],
        check=True,
    )  # fmt: skip
    parser = cffi.FFI()
    parser.cdef(DECLARATIONS.read_text() + DECLARED)
    native = parser.dlopen(str(library))

    def run(*sites: Site, calls: int = CALLS, second_ends: int = CALLS, recorded: int = CALLS) -> list[Found]:
        both = [*sites, Site(0, 0, 0)][:2]
        plan = parser.new("ffm_remedy_site[2]")
        behaviours = parser.new("behaviour[2]")
        for number, site in enumerate(both):
            plan[number].unit, plan[number].pace = number, recorded if number < len(sites) else 0
            times = (site.between, site.original, site.corrected, site.left_behind, site.noise)
            rarely = (site.every, US * site.long_original, US * site.long_corrected)
            then = (site.changes, US * site.then_original, US * site.then_corrected)
            bursts = (site.burst, US * site.pause)
            behaviours[number] = [
                *(US * time for time in times), site.disturbed, US * site.disturbance, *rarely, *then, *bursts,
                site.seed,
            ]  # fmt: skip
        tallies, trials = parser.new("ffm_remedy_tally[2]"), parser.new("ffm_remedy_trial[2]")
        native.simulate(plan, behaviours, calls, second_ends if len(sites) == 2 else 0, tallies, trials)
        return [
            Found(bool(trials[number].corrects), trials[number].pairs, trials[number].slower, tallies[number].original)
            for number in range(len(sites))
        ]

    return run


def test_a_correction_that_saves_time_stays_and_is_left_out_rarely(simulate: Simulate) -> None:
    (found,) = simulate(Site(original=500, corrected=20))
    assert found.corrects and found.pairs >= 2
    assert found.original < CALLS / 10


def test_a_correction_that_costs_time_goes_soon_and_is_tried_rarely(simulate: Simulate) -> None:
    (found,) = simulate(Site(original=20, corrected=500))
    assert not found.corrects and found.pairs >= 2
    assert found.original > 0.85 * CALLS


@pytest.mark.parametrize("corrected", [1000, 5000, 50_000])
def test_finding_out_that_a_correction_costs_time_costs_little(corrected: int, simulate: Simulate) -> None:
    """A pair of blocks costs a few calls; all further ones together a fiftieth of the time."""
    site = Site(original=20, corrected=corrected)
    (found,) = simulate(site)
    lost = (CALLS - found.original) * (site.corrected - site.original)
    assert not found.corrects
    assert lost <= 0.02 * CALLS * (site.between + site.original) + 7 * site.corrected


def test_a_loss_smaller_than_the_noise_is_found(simulate: Simulate) -> None:
    (found,) = simulate(Site(original=20, corrected=220, noise=500), calls=20 * CALLS)
    assert not found.corrects


@pytest.mark.parametrize("disturbance", [2_000, 20_000])
def test_one_disturbed_comparison_hides_no_loss(disturbance: int, simulate: Simulate) -> None:
    """Whichever call is disturbed, corrected or not."""
    for call in range(0, 100, 3):
        site = Site(original=20, corrected=320, disturbed=call, disturbance=disturbance)
        (found,) = simulate(site, calls=3 * CALLS)
        assert not found.corrects, call


@pytest.mark.parametrize("disturbance", [2_000, 20_000])
def test_one_disturbed_comparison_ends_no_gain(disturbance: int, simulate: Simulate) -> None:
    for call in range(0, 100, 3):
        site = Site(original=320, corrected=20, disturbed=call, disturbance=disturbance)
        (found,) = simulate(site, calls=3 * CALLS)
        assert found.corrects, call


@pytest.mark.parametrize("every", [29, 211, 1009])
def test_a_correction_that_loses_much_but_rarely_goes(every: int, simulate: Simulate) -> None:
    """Comparisons of a few calls hardly ever contain such a call, and their median hides it."""
    rarely = Site(original=320, corrected=20, every=every, long_original=320, long_corrected=2000 * every)
    (found,) = simulate(rarely, calls=30 * every)
    assert not found.corrects and found.slower > 0
    assert 30 * every - found.original < 8 * every


@pytest.mark.parametrize("every", [29, 211])
def test_what_corrected_calls_lose_rarely_may_be_less_than_they_gain(every: int, simulate: Simulate) -> None:
    rarely = Site(original=320, corrected=20, every=every, long_original=320, long_corrected=100 * every)
    (found,) = simulate(rarely, calls=30 * every)
    assert found.corrects and found.slower < 0
    assert found.original < 5 * every


@pytest.mark.parametrize("every", [29, 211])
def test_long_calls_that_are_the_programs_own_end_no_correction(every: int, simulate: Simulate) -> None:
    """Such as a wait that is needed now and then. Finding out takes few calls."""
    rarely = Site(original=320, corrected=20, every=every, long_original=2000 * every, long_corrected=2000 * every)
    (found,) = simulate(rarely, calls=60 * every)
    assert found.corrects and found.slower < 0
    assert found.original < 10 * every


@pytest.mark.parametrize(("between", "pays"), [(50, 10_000), (1000, 1000), (1000, 10_000)])
def test_a_correction_that_no_longer_pays_goes_soon(between: int, pays: int, simulate: Simulate) -> None:
    site = Site(original=320, corrected=20, between=between, changes=pays, then_original=20, then_corrected=320)
    (found,) = simulate(site, calls=3 * pays, recorded=3 * pays)
    assert not found.corrects and found.slower > 0
    assert found.original > 1.5 * pays


@pytest.mark.parametrize(("between", "costs"), [(50, 10_000), (1000, 1000), (1000, 10_000)])
def test_a_correction_that_pays_later_comes_back_soon(between: int, costs: int, simulate: Simulate) -> None:
    site = Site(original=20, corrected=320, between=between, changes=costs, then_original=320, then_corrected=20)
    (found,) = simulate(site, calls=3 * costs, recorded=3 * costs)
    assert found.corrects and found.slower < 0
    assert found.original < 1.5 * costs


MANY = 50 * CALLS
FEW_RUNS = 100


@pytest.mark.parametrize(("gain", "original"), [(30, 0.35), (100, 0.12)])
def test_a_gain_smaller_than_the_noise_is_mostly_had(gain: int, original: float, simulate: Simulate) -> None:
    """Of 2 and 7 % of the time, whose standard deviation is a fifth: what contradicts by chance does not end it for
    long.
    """
    sites = [Site(20 + gain, 20, noise=1000, seed=seed) for seed in range(1, FEW_RUNS + 1)]
    found = [simulate(site, calls=MANY, recorded=MANY)[0] for site in sites]
    assert sum(one.original for one in found) / FEW_RUNS <= original * MANY


@pytest.mark.parametrize(("loss", "corrected"), [(100, 0.2), (300, 0.04)])
def test_a_loss_smaller_than_the_noise_is_mostly_avoided(loss: int, corrected: float, simulate: Simulate) -> None:
    """Of 7 and 20 % of the time: comparisons go on for as long as corrections seem to lose."""
    sites = [Site(20, 20 + loss, noise=1000, seed=seed) for seed in range(1, FEW_RUNS + 1)]
    found = [simulate(site, calls=MANY, recorded=MANY)[0] for site in sites]
    assert sum(MANY - one.original for one in found) / FEW_RUNS <= corrected * MANY


def test_few_long_calls_lose_little(simulate: Simulate) -> None:
    """One before the comparison, and of its calls as many as show that a time slice is not the cause."""
    (found,) = simulate(Site(original=10_000, corrected=40_000), calls=17, recorded=17)
    assert not found.corrects
    assert 17 - found.original <= 2


@pytest.mark.parametrize("burst", [2, 3, 5, 8, 9, 11, 13, 16, 27, 100])
def test_a_gain_in_bursts_of_calls_is_had(burst: int, simulate: Simulate) -> None:
    """The pauses between them are in some blocks of calls and not in others."""
    site = Site(original=25, corrected=2, between=30, burst=burst, pause=4700)
    (found,) = simulate(site, calls=20 * CALLS, recorded=20 * CALLS)
    assert found.original < 4 * CALLS


@pytest.mark.parametrize("burst", [2, 3, 5, 8, 9, 11, 13, 16, 27, 100])
def test_a_loss_in_bursts_of_calls_is_found(burst: int, simulate: Simulate) -> None:
    site = Site(original=2, corrected=25 * burst, between=30, burst=burst, pause=1000)
    (found,) = simulate(site, calls=20 * CALLS, recorded=20 * CALLS)
    assert not found.corrects
    assert found.original > 16 * CALLS


RUNS = 200
"""With different noise."""


@pytest.mark.parametrize(
    ("loss", "corrected", "kept"), [(100, 30, 0.15), (200, 20, 0.05), (500, 12, 0.02)], ids=["10 %", "20 %", "50 %"]
)
def test_a_loss_that_stands_out_of_the_noise_ends_early(
    loss: int, corrected: int, kept: float, simulate: Simulate
) -> None:
    """Of 100 calls, each a millisecond apart, with noise whose standard deviation is a tenth of that."""
    found = [simulate(Site(300, 300 + loss, 530, noise=340, seed=seed), calls=100)[0] for seed in range(1, RUNS + 1)]
    assert sum(100 - one.original for one in found) / RUNS <= corrected
    assert sum(one.corrects for one in found) / RUNS <= kept


@pytest.mark.parametrize(("gain", "original", "gone"), [(100, 30, 0.05), (200, 18, 0.01)], ids=["a tenth", "a fifth"])
def test_a_gain_that_stands_out_of_the_noise_is_hardly_ever_given_back(
    gain: int, original: int, gone: float, simulate: Simulate
) -> None:
    found = [simulate(Site(300, 300 - gain, 530, noise=340, seed=seed), calls=100)[0] for seed in range(1, RUNS + 1)]
    assert sum(one.original for one in found) / RUNS <= original
    assert sum(not one.corrects for one in found) / RUNS <= gone


def test_many_calls_are_not_corrected_in_vain_where_there_are_few(simulate: Simulate) -> None:
    """One before the comparison and two in it."""
    (found,) = simulate(Site(original=500, corrected=1000, between=500), calls=16, recorded=16)
    assert not found.corrects
    assert 16 - found.original == 3


def test_a_wait_that_only_moves_to_another_call_is_no_gain(simulate: Simulate) -> None:
    """The call alone is much faster, but the program is not."""
    (found,) = simulate(Site(original=500, corrected=100, left_behind=500))
    assert not found.corrects


def test_calls_that_take_no_noticeable_time_are_compared_late(simulate: Simulate) -> None:
    (found,) = simulate(Site(original=5, corrected=1), calls=60)
    assert (found.pairs, found.original) == (0, 0)


def test_a_site_that_was_recorded_too_rarely_is_not_compared(simulate: Simulate) -> None:
    (found,) = simulate(Site(original=20, corrected=500), recorded=15)
    assert (found.corrects, found.pairs, found.original) == (True, 0, 0)


def test_each_site_is_judged_for_itself(simulate: Simulate) -> None:
    good, bad = simulate(Site(original=500, corrected=50), Site(original=50, corrected=500))
    assert good.corrects and not bad.corrects


def test_a_site_that_ends_does_not_keep_others_from_being_compared(simulate: Simulate) -> None:
    """The second site stops in the middle of its comparison."""
    for ends in range(4, 30):
        first, _ = simulate(Site(original=20, corrected=400), Site(original=20, corrected=400), second_ends=ends)
        assert not first.corrects
