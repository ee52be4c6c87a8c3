"""Advice about calls that Thrust's algorithms make."""

from __future__ import annotations

import msgspec
import pytest

from ffm.report.remedies.advice import identify_remedies
from ffm.report.remedies.problem_sites import problem_sites
from ffm.report.remedies.thrust_calls import ThrustCall, thrust_call
from ffm.results.documents.stacks import Frame, Stack
from tests.report.sample_analysis import sample_analysis

CUB = "thrust::THRUST_300001_SM_900_NS::cuda_cub::"
WAIT = ["cudaStreamSynchronize", "cub::CUB_300001_SM_900::SyncStream(CUstream_st*)"]
COPY = [*WAIT, f"cudaError {CUB}synchronize_optional<{CUB}cross_system<int> >(int&)", f"int* {CUB}copy<int*>(int*)"]
REDUCE = [*WAIT, f"cudaError {CUB}synchronize<{CUB}tag const>(int&)", f"int {CUB}detail::reduce_n_impl<int>(int)"]
TEMPORARY = [
    "cudaFree",
    f"void {CUB}free<int>(int*)",
    "void thrust::THRUST_300001_SM_900_NS::return_temporary_buffer<int>(int)",
]
VECTOR = ["cudaFree", f"void {CUB}free<int>(int*)", "thrust::detail::vector_base<int>::~vector_base()"]
OWN = ["cudaStreamSynchronize", "solve()", *COPY[2:]]


@pytest.mark.parametrize(
    ("names", "kind", "expected"),
    [
        (COPY, "synchronization", ThrustCall.AT_THE_END),
        (REDUCE, "synchronization", ThrustCall.WITHIN),
        (TEMPORARY, "free", ThrustCall.TEMPORARY),
        (VECTOR, "free", None),
        (OWN, "synchronization", None),
        (["cudaStreamSynchronize", "main"], "synchronization", None),
    ],
    ids=["at the end", "within", "temporary memory", "memory of a vector", "called by an algorithm", "without Thrust"],
)
def test_what_thrust_makes_a_call_for(names: list[str], kind: str, expected: ThrustCall | None) -> None:
    analysis = sample_analysis()
    frames = [
        Frame(module=0, offset=0x100 + depth, function=name, file="/include/a.h" if depth else "", line=depth)
        for depth, name in enumerate([*names, "main"])
    ]
    site = msgspec.structs.replace(analysis.sites[0], kind=kind)
    stacks = [Stack(key="0" * 32, frames=frames), *analysis.stacks[1:]]
    analysis = msgspec.structs.replace(analysis, stacks=stacks, sites=[site, *analysis.sites[1:]])
    assert thrust_call(analysis, site) == expected
    (remedy,) = (one for one in identify_remedies(problem_sites(analysis, "carry")) if one.site == 0)
    assert [step for step in remedy.steps if "Thrust" in step] == ([expected.value] if expected else [])
    assert expected is None or not any("Remove the" in step for step in remedy.steps)
