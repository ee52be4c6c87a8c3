"""The calls of a run that have a problem, by site and thread, with everything by which rules and baselines recognize
them."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import PurePath

import numpy as np

from ffm.driver.catalogue import load_catalogue
from ffm.driver.vocabulary import Effect
from ffm.model.groups.names import base_name, starts_a_thread
from ffm.results.call_sites import own_frame, own_frames, source_file
from ffm.results.documents.analysis import Analysis
from ffm.results.documents.benefit import Benefit
from ffm.results.documents.site import Site
from ffm.results.documents.stacks import Frame
from ffm.results.presumed import waiting_calls
from ffm.results.stored import Results, benefits_of_sites

_CLONE = re.compile(r"\s*\[clone [^\]]*\]|\.(cold|isra|part|constprop|lto_priv)(\.\d+)*\b")
"""What compilers append to the names of parts and copies of a function."""

_LIBRARY_VERSION = re.compile(r"(?<=\.so)[.\d]+$|-[0-9a-f]{8}(?=[.]so)")
"""Versions, and the hashes that `auditwheel` adds."""

UNPROVED = "wait"
"""The issue of a site in results that prove nothing."""

_OF_THE_RUNTIME = re.compile(r"libcudart_static_|__cuda|__nv_")
"""Functions that `nvcc` links into a program."""

REFUSED = frozenset({"required", "needed"})
"""Kinds of verdicts that are no problems."""


@dataclass(frozen=True, slots=True)
class Identity:
    """What stays the same of a site when addresses, lines, build paths and thread numbers change."""

    call: str
    problems: tuple[str, ...]
    """`synchronization`, `transfer` or both; or `UNPROVED` alone."""
    functions: tuple[str, ...]
    """The program's own functions on its stack, innermost first, without template arguments; libraries where names are
    unknown. All functions, if none is its own.
    """


@dataclass(frozen=True, slots=True)
class CallSite:
    """A call site with a problem. `index` is its index in the document."""

    index: int
    identity: Identity
    calls: tuple[str, ...]
    """The runtime's function and the driver's."""
    callers: tuple[str, ...]
    """The function that makes the call, and the program's own that leads to it: full and without arguments."""
    places: tuple[tuple[str, int], ...]
    """Files and lines of both; the line is 0 if it is unknown. The program's own comes first."""
    frames: tuple[tuple[str, ...], ...]
    """Names of each frame, innermost first: its function, its file, its library."""


@dataclass(frozen=True, slots=True)
class ProblemCalls:
    """The calls of one site on one thread that have a problem, or wait if nothing is proved.

    `benefit` is what fixing them alone saves.
    """

    site: CallSite
    thread: int
    """From 0, as in the timeline."""
    count: int
    benefit: Benefit


def problem_calls(results: Results) -> list[ProblemCalls]:
    """Return all calls with problems, by site and thread, largest saving first; all that wait, if nothing is proved.

    What the CUDA runtime unloads by itself as the program ends is not among them: no change of the program avoids it.

    Raises:
        DocumentError: The timeline next to the document cannot be read.
    """
    known = _on_one_thread_each(results.document)
    found = _by_thread(results) if known is None else known
    found = [calls for calls in found if not _unloads_by_itself(results.document, calls.site.index)]
    return sorted(found, key=lambda calls: (-calls.benefit.expected_s, calls.site.index, calls.thread))


def _unloads_by_itself(document: Analysis, index: int) -> bool:
    """Return whether only the CUDA runtime, and what ends a process, lead to a call that unloads device code."""
    site = document.sites[index]
    called = load_catalogue().get(site.function)
    if called is None or called.effect is not Effect.UNLOAD_CODE:
        return False
    own = own_frames(document.stacks[site.stack].frames, document.modules)
    return all(_OF_THE_RUNTIME.match(base_name(frame.function)) for frame in own)


def _on_one_thread_each(document: Analysis) -> list[ProblemCalls] | None:
    """Return them from the document alone; None if it does not say everything: some site has problems on several
    threads, or nothing is proved.
    """
    if not document.proves:
        return None
    found = []
    for index in with_problems(document):
        site = document.sites[index]
        if site.problem_thread is None:
            return None
        found.append(ProblemCalls(call_site(document, index), site.problem_thread, site.problem_count, site.benefit))
    return found


def with_problems(document: Analysis) -> list[int]:
    """Return the indices of the sites that have problems."""
    return [index for index, site in enumerate(document.sites) if site.problem_count]


def _by_thread(results: Results) -> list[ProblemCalls]:
    """Find them in the timeline, and replay the run for each."""
    timeline = results.timeline
    proved = results.document.proves
    sites = len(results.document.sites)
    pair = timeline.thread.astype(np.int64) * max(sites, 1) + timeline.site
    wrong = timeline.problem != 0 if proved else waiting_calls(timeline, results.work, results.document.staged)
    pairs, number = np.unique(pair[wrong], return_inverse=True)
    counts = np.bincount(number, timeline.occurrences[wrong], len(pairs)).astype(np.int64)
    label = np.searchsorted(pairs, pair).astype(np.int32)
    known = label < len(pairs)
    known[known] = pairs[label[known]] == pair[known]
    label[~known] = -1
    estimates = results.estimates if proved else results.presumed
    benefits = estimates.of_groups(label, np.arange(len(pairs), dtype=np.int32), len(pairs))
    described = {index: call_site(results.document, index) for index in np.unique(pairs % max(sites, 1)).tolist()}
    return [
        ProblemCalls(described[one % sites], one // sites, count, benefit)
        for one, count, benefit in zip(pairs.tolist(), counts.tolist(), benefits, strict=True)
    ]


def saved_together(results: Results, sites: list[int]) -> float:
    """Return the seconds that fixing some sites together saves, or saves at most if nothing is proved."""
    everything = results.document.everything
    if results.document.proves and everything is not None and set(sites) == set(with_problems(results.document)):
        return everything.expected_s
    if results.document.proves:
        return benefits_of_sites(results, [sites])[0].expected_s
    benefit = results.presumed.of_sites([sites])[0]
    return max(benefit.expected_s, benefit.high_s or 0.0)


def call_site(analysis: Analysis, index: int) -> CallSite:
    """Describe the site with an index of the document."""
    site = analysis.sites[index]
    frames = analysis.stacks[site.stack].frames
    own = own_frame(frames, analysis.modules)
    callers = [own.function] if own is not None else []
    places = [(source_file(own.file), own.line)] if own is not None else []
    callers.append(site.caller)
    places.append((site.file, site.line))
    names = [
        tuple(name for name in (*_functions(frame), PurePath(source_file(frame.file)).name, library(analysis, frame)))
        for frame in frames
    ]
    return CallSite(
        index=index,
        identity=_identity(analysis, site),
        calls=(site.call, site.function),
        callers=tuple(dict.fromkeys(name for caller in callers for name in (caller, base_name(caller)) if name)),
        places=tuple(dict.fromkeys(places)),
        frames=tuple(tuple(name for name in frame if name) for frame in names),
    )


def library(analysis: Analysis, frame: Frame) -> str:
    """Return the file name of a frame's module without version; empty for Python functions."""
    if frame.python or frame.module >= len(analysis.modules):
        return ""
    return _LIBRARY_VERSION.sub("", PurePath(analysis.modules[frame.module].path).name)


def _functions(frame: Frame) -> tuple[str, ...]:
    return (frame.function, frame.function if frame.python else base_name(frame.function))


def _identity(analysis: Analysis, site: Site) -> Identity:
    frames = analysis.stacks[site.stack].frames
    calls = [number for number, frame in enumerate(frames) if frame.function == site.call]
    outside = frames[calls[-1] + 1 :] if calls else frames
    problems = [
        name
        for name, verdicts in (("synchronization", site.synchronization), ("transfer", site.transfer))
        if any(verdict.kind not in REFUSED for verdict in verdicts)
    ]
    # What lies between in libraries and their headers changes with their versions and with the compiler's options.
    named = own_frames(outside, analysis.modules) or outside
    if not analysis.proves:
        problems = [UNPROVED]
    return Identity(site.call, tuple(problems), tuple(_once_in_a_row(_stable_name(analysis, frame) for frame in named)))


def _stable_name(analysis: Analysis, frame: Frame) -> str:
    if frame.python:
        return f"{PurePath(frame.file).name}:{frame.function}"
    if starts_a_thread(frame.function):
        return ""
    return base_name(_CLONE.sub("", frame.function)) if frame.function else library(analysis, frame)


def _once_in_a_row(names: Iterable[str]) -> list[str]:
    """Drop empty names, and repetitions: how deep a recursion is depends on the data."""
    kept: list[str] = []
    for name in names:
        if name and kept[-1:] != [name]:
            kept.append(name)
    return kept
