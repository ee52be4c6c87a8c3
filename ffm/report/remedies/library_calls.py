"""Which calls a library makes on behalf of the program, as cuBLAS does: the program cannot remove them by itself."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import takewhile
from pathlib import PurePath

from ffm.model.groups.names import base_name
from ffm.results.call_sites import own_frame, runtime_modules
from ffm.results.documents.analysis import Analysis
from ffm.results.documents.site import Site


@dataclass(frozen=True, slots=True)
class LibraryCall:
    """A shared library that makes a call, and the function through which the program's own code is in libraries; empty
    if that has no name.
    """

    library: str
    function: str

    @property
    def advice(self) -> str:
        """What a program can do that uses the library as it is."""
        used = "call that function" if self.function else "use it"
        purpose = f", for {base_name(self.function)}" if self.function else ""
        return (
            f"{self.library} makes the call{purpose}. If you cannot change that library, {used} less often, or "
            "where the GPU has no work. If you can, do the following."
        )


def library_call(analysis: Analysis, site: Site) -> LibraryCall | None:
    """Return which library makes a site's call; None if the program itself makes it, or that cannot be told.

    It is told by lines: those of the program's own source are known, and those of the library are not.
    """
    if not 0 <= site.stack < len(analysis.stacks):
        return None
    runtime = runtime_modules(analysis.modules)
    frames = [frame for frame in analysis.stacks[site.stack].frames if frame.module not in runtime or frame.python]
    own = own_frame(frames, analysis.modules)
    if own is None or any(frame.python for frame in frames):
        return None
    inner = list(takewhile(lambda frame: frame is not own, frames))
    if not inner or any(frame.line or frame.module == own.module for frame in inner):
        return None
    return LibraryCall(PurePath(analysis.modules[inner[0].module].path).name, inner[-1].function)
