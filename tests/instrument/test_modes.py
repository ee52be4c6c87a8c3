"""Stages and the collector mean the same by each flag."""

from __future__ import annotations

import re
from pathlib import Path

from ffm.instrument import modes

HEADER = Path(modes.__file__).with_name("native") / "collector" / "modes.h"


def test_each_flag_is_that_of_the_collector() -> None:
    declared = {name: int(number) for name, number in re.findall(r"FFM_MODE_(\w+) = (\d+)", HEADER.read_text())}
    assert declared == {mode.name: mode.value for mode in modes.Mode}
