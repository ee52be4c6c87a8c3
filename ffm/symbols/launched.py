"""The names of the kernels that a program launched, as it writes them."""

from __future__ import annotations

from ffm.results.documents.measured import LaunchedKernels
from ffm.symbols.demangle import demangle


def kernels_of_sites(launched: list[LaunchedKernels]) -> dict[int, list[str]]:
    """Return the demangled names of the kernels that each stack launched."""
    return {one.stack: [demangle(name) for name in one.names] for one in launched}
