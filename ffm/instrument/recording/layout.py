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
    structure = _structures()[name]
    names, formats, offsets = [], [], []
    for field, member in structure.fields:
        names.append(field)
        formats.append(_format(member.type))
        offsets.append(member.offset)
    size = declarations().sizeof(structure)
    return np.dtype({"names": names, "formats": formats, "offsets": offsets, "itemsize": size})


@cache
def _structures() -> dict[str, Any]:
    """Return the C structures by name.

    cffi parses each type that it is asked for, which takes 2 ms, so it is asked once for a structure of all.
    """
    parser = declarations()
    names, _, _ = parser.list_types()
    every = parser.typeof("struct {" + "".join(f"{name} {name}_;" for name in names) + "}")
    return {name: member.type for name, (_, member) in zip(names, every.fields, strict=True)}


def _format(kind: Any) -> Any:
    if kind.kind == "array":
        if kind.item.cname == "char":
            return f"S{kind.length}"
        return (_format(kind.item), (kind.length,))
    sign = "i" if kind.cname.startswith("int") else "u"
    return f"<{sign}{declarations().sizeof(kind)}"
