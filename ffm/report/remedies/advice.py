"""What a developer should change to fix a problem, and every place that must change (dissertation, chapter 6).

Pure functions over what stage 5 found about a call site. The advice is in terms of CUDA 11.2 and newer, which, unlike
the dissertation's CUDA, has stream-ordered allocation (`cudaMallocAsync`).
"""

from __future__ import annotations

from dataclasses import replace

from ffm.driver.vocabulary import Memory
from ffm.report.frameworks import says_that_it_copies, says_that_it_waits
from ffm.report.remedies.remedy import ProblemSite, Remedy, RemedyKind, remedy_for
from ffm.report.remedies.thrust_calls import ThrustCall
from ffm.report.remedies.transfer_advice import (
    in_words_of,
    managed_memset,
    partial_download,
    repeated_transfer,
    steps_to_smaller,
    synchronous_transfer,
)
from ffm.report.verdict_reasons import WORDS

AT_EXIT = (
    "A library makes this call when the program ends: there is nothing to change, unless the program need not do the "
    "work that it waits for."
)


def identify_remedies(problems: list[ProblemSite]) -> list[Remedy]:
    """Return a remedy for each problem site, largest expected benefit first. Smaller downloads come last because their
    benefit is only an upper limit.
    """
    remedies = [_remedy(problem) for problem in problems if _has_problem(problem)]
    return sorted(remedies, key=lambda remedy: (remedy.kind is RemedyKind.PARTIAL_DOWNLOAD, -remedy.benefit_s))


def _has_problem(problem: ProblemSite) -> bool:
    return _waits_or_repeats(problem) or problem.download is not None


def _waits_or_repeats(problem: ProblemSite) -> bool:
    return bool(problem.unnecessary or problem.misplaced or problem.repeated)


def _remedy(problem: ProblemSite) -> Remedy:
    """Return the remedy for one site. What the program can do if it uses a library as it is comes first."""
    remedy = _of_site(problem)
    if problem.at_exit:
        return remedy
    if problem.own_thread and problem.framework is not None:
        made = f"{problem.framework.name} makes the call on a thread of its own, for what the program gave it to do."
        return replace(remedy, steps=(made, *remedy.steps))
    if problem.kind == "transfer" and problem.package_call is not None:
        if says_that_it_copies(problem.package_call.function):
            return remedy
        made = f"{problem.package_call.package} makes the call, in {problem.package_call.function}."
        return replace(remedy, steps=(made, *remedy.steps))
    if problem.library is None:
        return remedy
    return replace(remedy, steps=(problem.library.advice, *remedy.steps))


def _of_site(problem: ProblemSite) -> Remedy:
    if problem.download is None:
        return _of_problem(problem)
    if not _waits_or_repeats(problem):
        return partial_download(problem, problem.download)
    remedy = _of_problem(problem)
    steps = steps_to_smaller(problem.download)
    if problem.download.saving_s <= remedy.benefit_s:
        return replace(remedy, steps=(*remedy.steps, *steps))
    if problem.download.touched_bytes == 0:
        steps.append("If it has to stay, do the following instead.")
    worth = problem.download.saving_s
    return replace(remedy, kind=RemedyKind.PARTIAL_DOWNLOAD, steps=(*steps, *remedy.steps), benefit_s=worth)


def _of_problem(problem: ProblemSite) -> Remedy:
    if problem.at_exit and problem.unnecessary:
        return _of_unnecessary(problem, [AT_EXIT])
    if problem.repeated:
        return repeated_transfer(problem)
    if problem.kind == "free":
        return _memory_management(problem)
    if problem.kind == "transfer":
        managed = any(link.memory == "managed" for link in problem.memory)
        return managed_memset(problem) if problem.sets_memory and managed else synchronous_transfer(problem)
    if problem.unnecessary:
        return _unnecessary(problem)
    return _misplaced(problem)


def _memory_management(problem: ProblemSite) -> Remedy:
    once = (
        "Allocate the buffer once for each stream that uses it, before the loop or in the object that outlives it, and "
        "free it after the last use."
    )
    pool = (
        "Or allocate with cudaMallocAsync and free with cudaFreeAsync on the stream that uses the buffer: they do not "
        "wait. Raise cudaMemPoolAttrReleaseThreshold of the device's pool so that the pool keeps the memory."
    )
    if problem.count == 1:
        once = (
            "Free the buffer where the GPU has no work: after a synchronization that the program needs, or at the end "
            "of the program."
        )
    steps = [once, pool] if problem.from_pool else [once]
    freed = {link.memory for link in problem.memory if link.role == "frees"}
    if problem.framework is not None:
        steps = [problem.framework.memory]
    if problem.thrust is not None:
        steps = [once, problem.thrust.value] if problem.thrust is ThrustCall.VECTOR else [problem.thrust.value]
    elif Memory.PINNED in freed:
        steps = ["Keep the pinned buffer for the life of the program: freeing it waits for all work of the context."]
    elif Memory.REGISTERED in freed:
        steps = [
            "Keep the memory registered as long as the program has it, or unregister it where the GPU has no work: "
            "unregistering waits for all work of the context."
        ]
    if problem.needed_for:
        steps.append(f"Wait otherwise, as with cudaStreamSynchronize, where the free is relied on: {_needed(problem)}.")
    return remedy_for(problem, RemedyKind.MEMORY_MANAGEMENT, problem.unnecessary, steps, "frees")


def _as_long_as(problem: ProblemSite) -> str:
    """Return the condition under which nothing relies on the waits, to end a sentence; empty if there is none."""
    if set(problem.keep) == {problem.site}:
        return ", as long as the last of them stays"
    return ", as long as the synchronization named below stays" if problem.keep else ""


def _unnecessary(problem: ProblemSite) -> Remedy:
    kept = _as_long_as(problem)
    if problem.in_copy and problem.copy_needed and not problem.in_upload:
        steps = [
            f"The copy itself waits before this call, which is needed: nothing relied on waiting once more{kept}. What "
            "saves both is to keep the values on the GPU, and to fetch them later or less often."
        ]
        return _of_unnecessary(problem, steps)
    if problem.in_copy and problem.framework is not None:
        steps = [
            f"The copy need not wait: in no run did anything rely on that{kept}.",
            in_words_of(problem.framework, problem.framework.sent_ahead)
            if problem.in_upload
            else problem.framework.asynchronous,
        ]
        return _of_unnecessary(problem, steps)
    if problem.thrust is not None:
        return _of_unnecessary(problem, [f"In no run did anything rely on the wait{kept}.", problem.thrust.value])
    if problem.loads_code:
        first = "use the kernel once" if problem.framework is not None else "load it, or use a kernel of it once,"
        steps = [
            f"In no run did anything rely on the wait{kept}. Loading device code waits for the GPU: {first} before "
            "that has work, as in a warm-up."
        ]
        return _of_unnecessary(problem, steps)
    if problem.kind == "other":
        steps = [
            f"In no run did anything rely on the wait in {problem.call}{kept}: make the call where the GPU has no "
            "work, or leave it out."
        ]
        return _of_unnecessary(problem, steps)
    called = problem.package_call
    if called is not None and not says_that_it_waits(called.function):
        steps = [
            f"In no run did anything rely on the wait{kept}. {called.package} itself waits, in {called.function}: "
            "call that less often, or where the GPU has no work."
        ]
        return _of_unnecessary(problem, steps)
    what, order = f"Remove the {problem.call}", "cudaEventRecord and cudaStreamWaitEvent"
    if problem.framework is not None:
        what, order = f"Leave out {problem.framework.waits}", problem.framework.order
    steps = [f"{what}: in no run did anything rely on it."]
    if set(problem.keep) == {problem.site}:
        steps = [f"{what}, but wait once where the results are used: nothing relied on the earlier calls."]
    elif problem.keep:
        steps = [f"{what}, and keep the synchronization named below."]
    if problem.unrecorded:
        steps.append(
            f"Before that, check whether a record of the event is missing: in {problem.unrecorded:,} of "
            f"{problem.count:,} calls, it was not recorded before, so the call waited for nothing."
        )
    steps.append(f"If its purpose is to order work on several streams, use {order} instead.")
    return _of_unnecessary(problem, steps)


def _of_unnecessary(problem: ProblemSite, steps: list[str]) -> Remedy:
    """Return the remedy for a wait of which these steps say how to leave it out. If some of its calls are needed, the
    first step says so instead.
    """
    if problem.needed_for:
        steps[0] = (
            f"Wait only where something relies on it, in {_needed(problem)}. Nothing relied on the other "
            f"calls{_as_long_as(problem)}."
        )
    return remedy_for(problem, RemedyKind.UNNECESSARY_SYNCHRONIZATION, problem.unnecessary, steps)


def _needed(problem: ProblemSite) -> str:
    """Return how many of the calls are needed as waits, and what for."""
    several = len(problem.needed_for) > 1
    reasons = [f"{WORDS[because]}{f' ({calls:,})' if several else ''}" for because, calls in problem.needed_for]
    return f"{sum(calls for _, calls in problem.needed_for):,} of {problem.count:,} calls: {'; '.join(reasons)}"


def _misplaced(problem: ProblemSite) -> Remedy:
    steps = [
        "Move the synchronization to just before the first use of the result, after the CPU work and the launches "
        "in between. If the stream has other work, wait instead for an event recorded where the call is now."
    ]
    return remedy_for(problem, RemedyKind.MISPLACED_SYNCHRONIZATION, problem.misplaced, steps, "host memory")
