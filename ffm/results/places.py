"""Sites and frames of an analysis in the form that readers see. Sites are numbered from 1."""

from __future__ import annotations

import functools
from collections.abc import Iterable
from dataclasses import dataclass
from itertools import zip_longest
from pathlib import PurePath

from ffm.model.groups.names import starts_a_thread
from ffm.results.call_sites import own_frames, source_file
from ffm.results.documents.analysis import Analysis
from ffm.results.documents.site import Site
from ffm.results.documents.stacks import Frame

MOST_STEPS = 2
"""Steps of a call path that tell sites apart: more would be a call stack."""


@dataclass(frozen=True, slots=True)
class Place:
    """A site in one line. `place` is `als.cu:738`, or `libcufft.so+0x201f0` if lines are unknown."""

    site: int
    call: str
    caller: str
    place: str
    file: str
    line: int
    only_waits: bool
    """Whether the call is a synchronization, and not one such as `cudaFree`, which waits besides."""

    def __str__(self) -> str:
        return f"{self.call} {self.place} (site {self.site})"

    @property
    def wait(self) -> str:
        """Its wait: calls such as `cudaFree` do not show by their name that they wait."""
        return str(self) if self.only_waits else f"the one inside {self}"


@dataclass(frozen=True, slots=True)
class StackFrame:
    """One frame of a stack, innermost first. `place` is as in `Place`."""

    function: str
    place: str
    file: str
    line: int
    inlined: bool


@functools.lru_cache(maxsize=1 << 16)  # stacks have most of their frames in common
def file_name(path: str) -> str:
    """Return the name of a source file or module without its folders."""
    return PurePath(source_file(path)).name


def frame_place(analysis: Analysis, frame: Frame) -> str:
    """Return file and line of a frame, or else module and offset; in a profiler's trace, which may have neither, the
    function.
    """
    if frame.file and frame.line:
        return f"{file_name(frame.file)}:{frame.line}"
    if not frame.offset and not _file_of(analysis, frame):
        return f"({frame.function})"
    if 0 <= frame.module < len(analysis.modules):
        return f"{file_name(_file_of(analysis, frame))}+{frame.offset:#x}"
    return f"{frame.offset:#x}"


def _file_of(analysis: Analysis, frame: Frame) -> str:
    return analysis.modules[frame.module].path if 0 <= frame.module < len(analysis.modules) else ""


def place(analysis: Analysis, index: int) -> Place:
    """Return the site with an index of the document."""
    site = analysis.sites[index]
    return Place(
        index + 1, site.call, site.caller, _site_place(analysis, site), site.file, site.line, _only_waits(site)
    )


def _only_waits(site: Site) -> bool:
    return site.kind == "synchronization"


def _site_place(analysis: Analysis, site: Site) -> str:
    if site.file and site.line:
        return f"{PurePath(site.file).name}:{site.line}"
    frames = analysis.stacks[site.stack].frames if 0 <= site.stack < len(analysis.stacks) else []
    for frame in frames:
        if frame.function == site.caller:
            return frame_place(analysis, frame)
    return frame_place(analysis, frames[0]) if frames else "unknown place"


def told_apart(analysis: Analysis, indices: Iterable[int]) -> dict[int, str]:
    """Distinguish sites that share call and place with another one, by where they are called from: ` from
    solver.cu:57`.

    The text names the step of the call path outwards to `main` at which most of them differ, and one more if it tells
    apart some that are still alike. Sites without a path are told apart by number.
    """
    alike: dict[tuple[str, str], list[int]] = {}
    for index in dict.fromkeys(indices):
        where = place(analysis, index)
        alike.setdefault((where.call, where.place), []).append(index)
    found: dict[int, str] = {}
    for (_, own), sites in alike.items():
        steps = list(zip_longest(*(_way(analysis, index, own) for index in sites), fillvalue=""))
        told = [steps[step] for step in _telling_steps(steps)]
        texts = (" < ".join(step[number] for step in told if step[number]) for number in range(len(sites)))
        found.update({index: f" from {text}" for index, text in zip(sites, texts, strict=True) if text})
    return found


def own_line(analysis: Analysis, index: int) -> Place | None:
    """Return the program's own line that leads to a site whose place is in a library's header; None if there is none,
    or if the site is there itself.
    """
    site = analysis.sites[index]
    frames = own_frames(analysis.stacks[site.stack].frames, analysis.modules) if site.line else []
    own = [
        Place(
            index + 1,
            site.call,
            frame.function,
            frame_place(analysis, frame),
            source_file(frame.file),
            frame.line,
            _only_waits(site),
        )
        for frame in frames
        if frame.file and frame.line
    ]
    if any((place.file, place.line) == (site.file, site.line) for place in own):
        return None
    return next(iter(own), None)


def reached_from(analysis: Analysis, indices: Iterable[int]) -> dict[int, str]:
    """As `told_apart`, and for sites in headers of libraries, from which line of the program: ` from main.cu:99`."""
    numbers = list(indices)
    found = told_apart(analysis, numbers)
    for index in numbers:
        own = own_line(analysis, index)
        told = found.get(index, "")
        if own is not None and own.place not in told.removeprefix(" from ").split(" < "):
            found[index] = f"{told} < {own.place}" if told else f" from {own.place}"
    return found


def _telling_steps(steps: list[tuple[str, ...]]) -> list[int]:
    """Return the steps, at most `MOST_STEPS` and in order, that tell most of the ways apart."""
    told: list[int] = []
    kinds = 1
    while len(told) < MOST_STEPS:
        texts = [steps[step] for step in told]
        each = {step: len(set(zip(*texts, one, strict=True))) for step, one in enumerate(steps)}
        best = max(each, key=lambda step: each[step], default=-1)
        if each.get(best, 1) <= kinds:
            break
        kinds = each[best]
        told = sorted([*told, best])
    return told


def _way(analysis: Analysis, index: int, own: str) -> list[str]:
    """Return the places on a site's stack, outwards from the call's own place, without those that start each program
    or thread.
    """
    frames = analysis.stacks[analysis.sites[index].stack].frames
    places = [frame_place(analysis, frame) for frame in frames if not starts_a_thread(frame.function)]
    return places[places.index(own) + 1 :] if own in places else places


def stack_frames(analysis: Analysis, index: int) -> list[StackFrame]:
    """Return the whole call stack of a site, innermost frame first."""
    return [
        StackFrame(frame.function, frame_place(analysis, frame), frame.file, frame.line, frame.inlined)
        for frame in analysis.stacks[analysis.sites[index].stack].frames
    ]
