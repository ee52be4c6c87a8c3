"""Which launches may use variables in device memory."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from ffm.driver.catalogue import DriverFunction
from ffm.driver.vocabulary import Effect, Kind
from ffm.evidence.calls import calls_where
from ffm.instrument.recording.layout import constant
from ffm.results.columnar.columns import Columns


def may_use_variables(columns: Columns, launches: NDArray[np.int64]) -> NDArray[np.bool_]:
    """Return which launches may use variables in device memory: those of their code, or one whose address the program
    asked for.

    Code is known to have none if that was seen when it was loaded, and if its handle was made after code was last
    unloaded. A kernel is known to use none if its machine code shows it.
    """
    done, functions = columns["result"] == 0, columns["function"]
    loads = calls_where(functions, lambda function: function.effect is Effect.LOAD_CODE)
    asks = done & calls_where(functions, lambda function: function.effect is Effect.FIND_VARIABLE)
    named_by_call = done & calls_where(functions, _names_code) & (columns["destination"] != 0)
    without: dict[int, bool] = {}
    since: dict[int, int] = {}
    for row in np.flatnonzero(named_by_call).tolist():
        made, of = int(columns["destination"][row]), int(columns["handle"][row])
        lacks = (
            columns["bytes"][row] == constant("FFM_CODE_WITHOUT_VARIABLES") if loads[row] else without.get(of, False)
        )
        without[made] = bool(lacks) and without.get(made, True)
        since.setdefault(made, int(columns["start"][row]))
    if any(not without.get(handle, False) for handle in columns["handle"][asks].tolist()):
        return np.ones(len(launches), np.bool_)
    unloads = done & calls_where(functions, lambda function: function.effect is Effect.UNLOAD_CODE)
    unloaded = np.sort(columns["start"][unloads])
    handle, each = np.unique(columns["handle"][launches], return_inverse=True)
    lacks = np.array([without.get(one, False) for one in handle.tolist()], np.bool_)[each]
    seen = np.array([since.get(one, 0) for one in handle.tolist()], np.int64)[each]
    start = columns["start"][launches]
    before = np.searchsorted(unloaded, start), np.searchsorted(unloaded, seen)
    uses_none = columns["bytes"][launches] == constant("FFM_CODE_WITHOUT_VARIABLES")
    found: NDArray[np.bool_] = ~((lacks & (before[0] == before[1])) | uses_none)
    return found


def _names_code(function: DriverFunction) -> bool:
    """Return whether a function returns a handle of code, such as a module's or a kernel's."""
    return function.kind is Kind.MODULE and function.effect is not Effect.FIND_VARIABLE
