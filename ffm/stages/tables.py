"""The tables of what stages 3 and 4 find, apart from the stages: reading them must not require what measuring does."""

from __future__ import annotations

import numpy as np

from ffm.evidence.operations import FUNCTION
from ffm.model.necessity.reasons import Reason
from ffm.model.transfers import Repetition
from ffm.results.columnar.columns import LONGEST, Column, Table, duration, identity, number_of

SYNCHRONIZATIONS = Table(
    {
        **identity(),
        "reason": Column(np.uint8, among=lambda: list(Reason)),
        "keep_stack": number_of("stacks", none=True),
    }
)

TRANSFERS = Table(
    {
        **identity(),
        "kind": Column(np.uint8, among=lambda: list(Repetition)),
        "first_stack": number_of("stacks", none=True),
    }
)

ACCESSES = Table(
    {
        **identity(),
        "function": FUNCTION,
        "synchronization_function": FUNCTION,
        **{f"synchronization_{name}": column for name, column in identity().items() if name != "process"},
    }
)

GPU_TIME_TABLE = Table(
    {**identity(), "nanoseconds": duration(), "arriving": duration()},
    {"is work over when it has arrived": lambda columns: bool((columns["arriving"] <= columns["nanoseconds"]).all())},
)

FIRST_USES = Table({**identity(), "first_use": Column(np.int64, least=0, most=LONGEST)})
