"""Waits that CUDA documents, for runs in which the driver's internal wait function was not hooked.

Nothing then shows how long a call waited, or whether a free or a copy waited at all. A model in which they do not wait
would count what the next free waits instead as saved by removing a synchronization. So calls that are documented to
wait count as waiting for their whole duration. They get no verdict: only explicit synchronizations are judged.
"""

from __future__ import annotations

import numpy as np

from ffm.driver.catalogue import DriverFunction, load_catalogue
from ffm.driver.vocabulary import Kind, Memory
from ffm.instrument.recording.layout import constant
from ffm.results.columnar.columns import Columns

FREES_THAT_WAIT = frozenset({Memory.DEVICE, Memory.PINNED, Memory.REGISTERED, Memory.MANAGED})
"""Memory whose free waits for the work that may use it (CUDA Driver API, "API synchronization behavior")."""


def with_documented_waits(columns: Columns) -> Columns:
    """Return a run's operations with `wait` and `waits` as CUDA documents them; all other columns are shared.

    Those of successful calls that wait: explicit synchronizations, copies to or from the host that do not promise to
    return early, and frees of `FREES_THAT_WAIT`.
    """
    catalogue = load_catalogue()
    copies = np.isin(columns["function"], [function.index for function in catalogue.functions if _copies(function)])
    others = np.isin(columns["function"], [function.index for function in catalogue.functions if _waits(function)])
    on_host = constant("FFM_OPERATION_HOST_SOURCE") | constant("FFM_OPERATION_HOST_DESTINATION")
    waiting = others | copies & ((columns["flags"] & on_host) != 0)
    waiting &= columns["result"] == 0
    return {
        **columns,
        "wait": np.where(waiting, columns["duration"], columns["wait"]),
        "waits": np.maximum(columns["waits"], waiting.astype(columns["waits"].dtype)),
    }


def _copies(function: DriverFunction) -> bool:
    return function.kind is Kind.TRANSFER and not function.asynchronous


def _waits(function: DriverFunction) -> bool:
    free = function.kind is Kind.FREE and function.memory in FREES_THAT_WAIT and not function.asynchronous
    return free or function.kind is Kind.SYNCHRONIZATION
