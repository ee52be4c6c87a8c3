"""The compiled planted programs, shared by the tests of both watches."""

from __future__ import annotations

import pytest

from tests.planted.building import KEPT, Programs


@pytest.fixture(scope="session")
def programs(tmp_path_factory: pytest.TempPathFactory) -> Programs:
    """The planted programs, compiled when they are first used."""
    return Programs(tmp_path_factory.mktemp("planted"), kept=KEPT)
