"""Names of a run's regions: its calls, its GPU work, and its CPU work between two calls."""

from __future__ import annotations

from collections.abc import Sequence

from ffm.model.groups.names import base_name, starts_a_thread
from ffm.results.documents.analysis import Analysis
from ffm.results.documents.stacks import Frame
from ffm.results.places import file_name, frame_place, place, told_apart

AFTER = "after the last call"
_BESIDE = "beside "
_NO_FRAMES = (_BESIDE, "before any kernel")
"""What a profiler's trace without stacks has in place of frames."""
_STUB = "__device_stub__"


class RegionNames:
    """Names of calls, GPU work and CPU work, from the stacks of an analysis."""

    def __init__(self, analysis: Analysis) -> None:
        self._analysis = analysis
        self._apart = {
            index: way.removeprefix(" from ") for index, way in told_apart(analysis, range(len(analysis.sites))).items()
        }
        self._outer = [self._frames(index) for index in range(len(analysis.sites))]

    def call(self, site: int) -> tuple[str, str]:
        """Return the name and place of a site's call."""
        where = place(self._analysis, site)
        return where.call, self._apart.get(site, where.place)

    def work(self, site: int) -> tuple[str, str]:
        """Return the name and place of the GPU work of a site: the kernel's, if the driver told it or the stack shows
        it.
        """
        name, at = self._shown_work(site)
        kernels = list(dict.fromkeys(_unqualified(kernel) for kernel in self._analysis.sites[site].kernels))
        if len(kernels) > 1:
            return f"{kernels[0]} and {len(kernels) - 1} more", at
        return (kernels[0] if kernels else name), at

    def _shown_work(self, site: int) -> tuple[str, str]:
        where = place(self._analysis, site)
        call, at = self.call(site)
        if where.caller.startswith(_BESIDE) and self._analysis.sites[site].kind != "transfer":
            return where.caller.removeprefix(_BESIDE), ""
        frames = self._analysis.stacks[self._analysis.sites[site].stack].frames
        stubs = [index for index, frame in enumerate(frames) if frame.function.startswith(_STUB)]
        if not stubs or stubs[-1] + 1 >= len(frames):
            return call, at
        launcher = frames[stubs[-1] + 2 : stubs[-1] + 3]
        if launcher and launcher[0].file and launcher[0].line:
            at = frame_place(self._analysis, launcher[0])
        return base_name(frames[stubs[-1] + 1].function), at

    def between(self, first: int, second: int | None) -> tuple[str, str, set[int]]:
        """Return the function, the file and the lines of the CPU work between two sites' calls; None is the end."""
        if second is None:
            return AFTER, "", set()
        before, after = self._outer[first], self._outer[second]
        common: tuple[Frame, Frame] | None = None
        for index, (one, other) in enumerate(zip(before, after, strict=False)):
            if one.function != other.function or one.module != other.module:
                break
            common = one, other
            # The address of a function with an inlined call is that of the innermost one, so only its line counts.
            inlines = _inlines(before, index) and _inlines(after, index)
            if one.line != other.line or (one.offset != other.offset and not inlines):
                break
        if common is None or not common[0].function:
            call, at = self.call(first)
            return f"after {call}", at, set()
        own, other = common
        return base_name(own.function), file_name(own.file), {one.line for one in (own, other) if one.line}

    def _frames(self, site: int) -> list[Frame]:
        """Return the frames of the program on a site's stack, outermost first: from its start to the caller."""
        described = self._analysis.sites[site]
        frames = self._analysis.stacks[described.stack].frames
        caller = next((index for index, frame in enumerate(frames) if frame.function == described.caller), 0)
        return [
            frame
            for frame in reversed(frames[caller:])
            if not starts_a_thread(frame.function) and not frame.function.startswith(_NO_FRAMES)
        ]


def _unqualified(kernel: str) -> str:
    """Return a kernel's name without the namespaces, template arguments and parameters: there is room for little."""
    return base_name(kernel).rpartition("::")[2]


def _inlines(frames: Sequence[Frame], index: int) -> bool:
    """Return whether what a frame called was inlined; frames are ordered outermost first."""
    return index + 1 < len(frames) and frames[index + 1].inlined
