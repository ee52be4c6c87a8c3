"""A hand-written analysis for the tests of the report: four sites, two folds, a sequence, a kept call."""

from __future__ import annotations

import msgspec

from ffm.results.documents.analysis import (
    Analysis,
    Group,
    KeptWait,
    Matching,
    Sequence,
    SequenceOperation,
    StageCost,
    UnmatchedSite,
)
from ffm.results.documents.benefit import Benefit
from ffm.results.documents.notes import UnusableModule
from ffm.results.documents.site import Site, Verdict
from ffm.results.documents.stacks import Frame, Module, Stack
from ffm.results.vocabulary import Because

TEMPLATE = "void thrust::detail::contiguous_storage<float, thrust::device_allocator<float> >::deallocate()"


def _stack(key: str, caller: str, file: str, line: int, offset: int) -> Stack:
    return Stack(
        key=key.rjust(32, "0"),
        frames=[
            Frame(module=1, offset=0x41F0, function="cudaFree"),
            Frame(module=0, offset=offset, function="release", file=file, line=3, inlined=True),
            Frame(module=0, offset=offset, function=caller, file=file, line=line),
            Frame(module=0, offset=0x1200, function="main", file="/src/main.cpp", line=146),
        ],
    )


def _site(
    call: str,
    function: str,
    caller: str,
    line: int,
    stack: int,
    kind: str,
    count: int,
    saving: Benefit,
    **more: object,
) -> Site:
    values: dict[str, object] = {
        "call": call,
        "function": function,
        "caller": caller,
        "file": "/src/als.cu" if line else "",
        "line": line,
        "stack": stack,
        "kind": kind,
        "count": count,
        "total_s": 30.5,
        "wait_s": 20.25,
        "gap_s": 15.125,
        "bytes": 0,
        "problem_count": count,
        "synchronization": [],
        "transfer": [],
        "benefit": saving,
    }
    return Site(**{**values, **more})  # type: ignore[arg-type]


def benefit(carry: float, bound: float) -> Benefit:
    return Benefit(carry_s=carry, bound_s=bound)


def sample_analysis() -> Analysis:
    """1,000 seconds of a program with problems worth 12.5, 10, 2.5 and 0.5 seconds."""
    unused = Because.NOTHING_RELIES
    sites = [
        _site(
            "cudaFree",
            "cuMemFree_v2",
            "doALS(int const*, float*)",
            760,
            0,
            "free",
            5000,
            benefit(10.0, 12.0),
            synchronization=[Verdict(kind="unnecessary", because=unused, occurrences=5000)],
        ),
        _site(
            "cudaMemcpy",
            "cuMemcpyHtoD_v2",
            "doALS(int const*, float*)",
            738,
            1,
            "transfer",
            5000,
            benefit(2.5, 3.0),
            bytes=3 * 1024 * 1024,
            synchronization=[Verdict(kind="unnecessary", because=unused, occurrences=5000)],
            transfer=[
                Verdict(
                    kind="no-op",
                    because=Because.NO_OP,
                    occurrences=4999,
                    first=1,
                )
            ],
        ),
        _site(
            "cudaFree",
            "cuMemFree_v2",
            TEMPLATE,
            0,
            2,
            "free",
            120,
            benefit(0.5, 0.5),
            synchronization=[
                Verdict(
                    kind="conditionally unnecessary",
                    because=Because.LATER_COVERS,
                    occurrences=120,
                    keep=3,
                )
            ],
        ),
        _site(
            "cudaDeviceSynchronize",
            "cuCtxSynchronize",
            "main",
            150,
            3,
            "synchronization",
            5000,
            benefit(0.0, 0.0),
            problem_count=0,
            synchronization=[Verdict(kind="required", because=Because.RESULT_USED, occurrences=5000)],
        ),
    ]
    return Analysis(
        application="als",
        origin="ffm",
        command=["./als", "100", "a b"],
        wall_s=1000.0,
        timeline="timeline.arrow",
        modules=[Module(path="/bin/als", build_id="aa"), Module(path="/lib/libcudart.so.13", build_id="bb")],
        stacks=[
            _stack("0", "doALS(int const*, float*)", "/src/als.cu", 760, 0x1100),
            _stack("1", "doALS(int const*, float*)", "/src/als.cu", 738, 0x1110),
            _stack("2", TEMPLATE, "", 0, 0x1120),
            _stack("3", "main", "/src/main.cpp", 150, 0x1130),
        ],
        sites=sites,
        points=[
            Group(name="cudaFree", sites=[0], count=5000, benefit=benefit(10.0, 12.0), conditional=False),
            Group(name="cudaMemcpy", sites=[1], count=5000, benefit=benefit(2.5, 3.0), conditional=False),
            Group(name="cudaFree", sites=[2], count=120, benefit=benefit(0.5, 0.5), conditional=True),
        ],
        folds=[
            Group(
                name="cudaFree",
                sites=[0, 2],
                count=5120,
                benefit=benefit(10.5, 12.5),
                conditional=True,
                parts=[
                    Group(
                        name="thrust::detail::contiguous_storage<...>::deallocate",
                        sites=[2],
                        count=120,
                        benefit=benefit(0.5, 0.5),
                        conditional=True,
                    ),
                    Group(name="doALS", sites=[0], count=5000, benefit=benefit(10.0, 12.0), conditional=False),
                ],
            ),
            Group(name="cudaMemcpy", sites=[1], count=5000, benefit=benefit(2.5, 3.0), conditional=False),
        ],
        sequences=[
            Sequence(
                operations=[
                    SequenceOperation(site=1, count=5000, problems=["synchronization", "transfer"]),
                    SequenceOperation(site=0, count=5000, problems=["synchronization"]),
                    SequenceOperation(site=2, count=120, problems=["synchronization"]),
                ],
                recurrences=5000,
                ends_at=3,
                benefit=benefit(12.5, 14.0),
            )
        ],
        costs=[
            StageCost(stage="baseline", wall_s=1000.0, ratio=1.0),
            StageCost(stage="tracing", wall_s=1100.0, ratio=1.1),
        ],
        matching=Matching(matched_s=990.0, unmatched_s=10.0, unmatched=[UnmatchedSite(site=1, operations=5000)]),
        notes=[UnusableModule(problem="libals.so cannot be read (No such file or directory)")],
    )


def imported_analysis(high_s: float = 9.0) -> Analysis:
    """The same as a profiler's trace, which proves nothing: doing without the waits of site 1 saves at most `high_s`,
    and nothing is said about those of site 4.
    """
    analysis = sample_analysis()
    sites = [
        msgspec.structs.replace(site, problem_count=0, synchronization=[], transfer=[], benefit=benefit(0, 0))
        for site in analysis.sites
    ]
    wait = KeptWait(site=0, occurrences=40, saving_s=high_s / 2, low_s=0.0, high_s=high_s)
    return msgspec.structs.replace(
        analysis, origin="nsys", sites=sites, folds=[], sequences=[], points=[], unproved=[wait] if high_s else []
    )
