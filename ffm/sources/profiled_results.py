"""Writes results from what a profiler recorded, so that the viewing commands can read them."""

from __future__ import annotations

import hashlib
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from ffm.driver.vocabulary import Effect
from ffm.errors import DocumentError
from ffm.model.timeline import Kind
from ffm.results.documents.analysis import Analysis, MarkedIterations
from ffm.results.documents.notes import NoLines, NoStacks, Profiled
from ffm.results.documents.stacks import Frame, Module, Stack
from ffm.results.folder.identity import forget_runs
from ffm.results.folder.lock import writing_to
from ffm.results.folder.paths import ResultsFolder
from ffm.sources.meanings import meaning
from ffm.sources.profile import Profile, Step
from ffm.sources.profiled import profiled_run
from ffm.stages.analysis.findings import Findings, SiteDescription
from ffm.stages.analysis.results import write_results

_PYTHON_FILES = (".py", ".pyx", ">")
"""How the names of Python's sources end; `<string>` is code from the command line."""


def write_profile(profile: Profile, origin: str, results_folder: Path) -> Analysis:
    """Analyse a profile and write the results; `origin` is the name of the reader.

    Raises:
        DocumentError: None of the GPU's work is tied to a call, or the kernels are missing.
    """
    if len(profile.unlaunched) and not len(profile.work.call):
        raise DocumentError(
            f"{profile.application}: none of its {len(profile.unlaunched):,} pieces of the GPU's work has the "
            "correlation number of a recorded call, so nothing shows what waited for what. Record it again, with calls "
            "of CUDA, from before the first kernel."
        )
    launches = _launches(profile)
    if launches and profile.partners is None and not (profile.work.name >= 0).any():
        raise DocumentError(
            f"{profile.application}: it has {launches:,} launches, but none of the kernels that they started, so "
            "nothing shows what waited for what. Record it again, with all of CUDA's activities."
        )
    found = findings(profile, origin)
    ResultsFolder(results_folder).make()
    with writing_to(results_folder, f"ffm import {origin}"):
        forget_runs(results_folder)
        return write_results(found, results_folder)


def _launches(profile: Profile) -> int:
    """Return how many calls of a profile launch kernels."""
    meanings = [meaning(name) for name in profile.names]
    launches = np.array([one is not None and one.effect is Effect.LAUNCH_KERNEL for one in meanings], bool)
    return int(np.count_nonzero(launches[profile.calls.name]))


def findings(profile: Profile, origin: str) -> Findings:
    """Return the profile's timeline, with a site for each call stack or, where those are unknown, for each call beside
    the same kernel.
    """
    site, descriptions, stacks, modules = _sites(profile)
    run = profiled_run(profile, site)
    begin = int(profile.calls.start.min(initial=np.iinfo(np.int64).max))
    end = max(int(profile.calls.end.max(initial=0)), int(profile.work.end.max(initial=0)))
    partners = profile.partners
    on_gpu = np.ones(len(profile.calls), bool) if partners is None else partners.awaits < 0
    has_stacks = bool((profile.calls.chain >= 0).any())
    notes = [
        Profiled(profiler=profile.recorded_by),
        *([] if has_stacks else [NoStacks()]),
        *([] if profile.lines else [NoLines(profiler=origin)]),
        *profile.unlaunched.notes,
        *profile.notes,
    ]
    return Findings(
        application=profile.application,
        command=[],
        wall_s=max(end - begin, 1) / 1e9,
        timeline=run.timeline,
        sites=descriptions,
        stacks=stacks,
        modules=modules,
        origin=origin,
        notes=notes,
        work=run.work,
        marked=_iterations(profile, run.timeline.thread),
        unproved=((run.timeline.wait > 0) | (run.timeline.kind == Kind.SYNCHRONIZATION)) & on_gpu,
        kernels=_kernels(profile, site),
    )


def _kernels(profile: Profile, site: NDArray[np.int32]) -> dict[int, list[str]]:
    """Return the names of the kernels that each site launched, those launched most often first."""
    work = profile.work
    launched = np.flatnonzero(work.name >= 0)
    pairs = np.column_stack((site[work.call[launched]], work.name[launched]))
    distinct, count = np.unique(pairs, axis=0, return_counts=True)
    kernels: dict[int, list[str]] = {}
    for place in np.argsort(-count, kind="stable").tolist():
        number, name = distinct[place].tolist()
        kernels.setdefault(number, []).append(profile.names[name])
    return kernels


def _iterations(profile: Profile, thread: NDArray[np.int32]) -> list[MarkedIterations]:
    """Return the rows of the steps that the program marked, for each thread of their processes."""
    calls = profile.calls
    steps: dict[tuple[str, int], list[Step]] = {}
    for step in sorted(profile.steps, key=lambda step: step.start):
        before = steps.setdefault((step.name, step.process), [])
        if not before or before[-1].end <= step.start:
            before.append(step)
    found = []
    for (name, process), marked in steps.items():
        for number in np.unique(thread[calls.process == process]).tolist():
            first, last = np.searchsorted(thread, (number, number + 1))
            start = calls.start[first:last]
            begin, end = (
                first + np.searchsorted(start, times)
                for times in ([step.start for step in marked], [step.end for step in marked])
            )
            found.append(MarkedIterations(name=name, thread=number, begin=begin.tolist(), end=end.tolist()))
    return found


def _sites(profile: Profile) -> tuple[NDArray[np.int32], list[SiteDescription], list[Stack], list[Module]]:
    calls = profile.calls
    beside = np.where(calls.chain >= 0, -1, _kernel_before(profile))
    identity = np.column_stack((calls.name, calls.chain, beside))
    distinct, site = np.unique(identity, axis=0, return_inverse=True)
    site = site.reshape(-1)
    moved = np.zeros(len(distinct), np.int64)
    np.add.at(moved, site[profile.work.call], profile.work.bytes)
    modules: dict[str, int] = {"": 0}
    descriptions, stacks = [], []
    for number, (name, chain, kernel) in enumerate(distinct.tolist()):
        frames = [Frame(module=0, offset=0, function=profile.names[name])]
        if chain >= 0:
            frames += [
                Frame(
                    module=modules.setdefault(module, len(modules)),
                    offset=0,
                    function=function,
                    file=file,
                    line=line,
                    python=file.endswith(_PYTHON_FILES),
                )
                for function, module, file, line in profile.chains[chain].frames
                if function != profile.names[name]
            ]
        else:
            where = f"beside {profile.names[kernel]}" if kernel >= 0 else "before any kernel"
            frames.append(Frame(module=0, offset=0, function=where))
        descriptions.append(SiteDescription(number, _function(profile.names[name]), int(moved[number])))
        key = hashlib.blake2b(repr([(f.function, f.file, f.line) for f in frames]).encode(), digest_size=16)
        stacks.append(Stack(key=key.hexdigest(), frames=frames))
    return site.astype(np.int32), descriptions, stacks, [Module(path=path, build_id="") for path in modules]


def _function(name: str) -> str:
    """Return the driver function that a call of CUDA stands for; other interfaces' calls stand for themselves."""
    if not name.startswith("cu"):
        return name
    function = meaning(name)
    return "" if function is None else function.name


def _kernel_before(profile: Profile) -> NDArray[np.int64]:
    """Return, for each call, the name of the kernel that it launched, or else its thread launched last; -1: none."""
    calls, work = profile.calls, profile.work
    kernel = np.full(len(calls), -1, np.int64)
    launched = work.name >= 0
    kernel[work.call[launched]] = work.name[launched]
    rows = np.arange(len(calls))
    begins = np.ones(len(calls), bool)
    begins[1:] = (calls.thread[1:] != calls.thread[:-1]) | (calls.process[1:] != calls.process[:-1])
    first = np.maximum.accumulate(np.where(begins, rows, 0))
    last = np.maximum.accumulate(np.where(kernel >= 0, rows, -1))
    return np.where(last >= first, kernel[last.clip(0)], -1)
