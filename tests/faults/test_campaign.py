"""A few faults at random moments and places; `make faults` tries many."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from ffm.vgpu.paths import sample
from tests.faults.campaign import BAD, Campaign
from tests.faults.ground import Ground
from tests.server import Server


@pytest.fixture(scope="module")
def ground(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Ground]:
    scratch = tmp_path_factory.mktemp("faults")
    with Server(scratch) as server:
        yield Ground.prepare(sample("als"), scratch, server=server)


@pytest.mark.parametrize(
    ("kind", "rounds"),
    [
        pytest.param("kill", 2, marks=pytest.mark.thorough),
        pytest.param("disk", 1, marks=pytest.mark.thorough),
        ("pair", 1),
        ("link", 1),
    ],
)
def test_what_goes_wrong_is_told_and_nothing_is_lost(ground: Ground, kind: str, rounds: int) -> None:
    campaign = Campaign(ground)
    for _ in range(rounds):
        getattr(campaign, kind)()
    assert not campaign.stories
    assert not any(campaign.counts[name] for name in BAD)
