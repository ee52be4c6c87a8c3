"""The recording's binary layout, read from the C declarations that the collector is compiled with."""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import Any

import cffi
import numpy as np

from ffm.instrument.declarations import constant_in, declarations_in

DECLARATIONS = Path(__file__).parents[1] / "native" / "record" / "layout.h"


def declarations() -> cffi.FFI:
    """Return the declarations of `layout.h`."""
    return declarations_in(DECLARATIONS)


@cache
def constant(name: str) -> int:
    """Return the value of an enumerator, such as `FFM_CHUNK_OPERATIONS`."""
    return constant_in(DECLARATIONS, name)


@cache
def record_type(name: str) -> np.dtype[Any]:
    """Return the NumPy type of a C structure, such as `ffm_operation`: same fields, offsets and size."""
    parser = declarations()
    structure = parser.typeof(name)
    names, formats, offsets = [], [], []
    for field, member in structure.fields:
        names.append(field)
        formats.append(_format(member.type))
        offsets.append(member.offset)
    return np.dtype({"names": names, "formats": formats, "offsets": offsets, "itemsize": parser.sizeof(name)})


def _format(kind: Any) -> Any:
    if kind.kind == "array":
        if kind.item.cname == "char":
            return f"S{kind.length}"
        return (_format(kind.item), (kind.length,))
    sign = "i" if kind.cname.startswith("int") else "u"
    return f"<{sign}{declarations().sizeof(kind)}"
