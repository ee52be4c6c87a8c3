"""Numbers of a pass that only the pass itself knows, so that the compiler can keep them in registers.

What lies in a column goes through memory at each row, because the compiler cannot know that two columns are not the
same one. If the next row depends on the last one's numbers, waiting for these takes most of a pass.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ffm.model.compiled import built


def _built() -> Any:
    """Return what compiled passes call in place of `registers`: the numbers lie on their stack."""
    from numba import types
    from numba.core import cgutils
    from numba.extending import intrinsic
    from numba.np import arrayobj

    code: Any = cgutils
    arrays: Any = arrayobj

    @intrinsic
    def registers(context: Any, values: Any) -> Any:
        kind = types.Array(types.int64, 1, "C")

        def build(base: Any, builder: Any, signature: Any, arguments: Any) -> Any:
            count, size = base.get_constant(types.intp, len(values)), base.get_constant(types.intp, 8)
            place = code.alloca_once(builder, base.get_value_type(types.int64), size=count)
            for number, given in enumerate(values):
                value = base.cast(builder, builder.extract_value(arguments[0], number), given, types.int64)
                builder.store(value, code.gep_inbounds(builder, place, number))
            column = arrays.make_array(kind)(base, builder)
            arrays.populate_array(column, data=place, shape=[count], strides=[size], itemsize=size, meminfo=None)
            return column._getvalue()

        return kind(values), build

    return registers


@built(_built)
def registers(values: tuple[Any, ...]) -> Any:
    """Return a column of whole numbers. Only the kernel that asks for it, and what it calls, may use it."""
    return np.array(values, np.int64)
