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
SHARED = [
    "cudaFree",
    "thrust::NS::detail::contiguous_storage<int>::deallocate()",
    "std::shared_ptr<int>::~shared_ptr()",
]
BLOCK = ["cudaFree", f"void {CUB}free<int>(int*)"]
ACROSS = [
    "cudaStreamSynchronize",
    f"cudaError {CUB}trivial_copy_to_device<int>(int*, int const*, unsigned long, CUstream_st*)",
    f"int* {CUB}__copy::cross_system_copy_n<int>(int*)",
]
ASSIGNED = [*ACROSS, "thrust::detail::vector_base<int>::operator=<int>(int)", "thrust::device_vector<int>::f()"]
COPIED = [*ACROSS, f"int* {CUB}copy<int*>(int*)", "int* thrust::copy<int*, int*>(int*, int*, int*)"]
ELEMENT = [*ACROSS, "thrust::device_reference<int>::operator int()"]
READ = [*ACROSS, f"int {CUB}get_value<int>()", "thrust::NS::reference<int, int*>::operator unsigned long()"]
FETCHED = [*ACROSS, f"int {CUB}detail::reduce_n_impl<int>(int)", "int thrust::copy_if<int*>(int*)"]
FILLED = [
    *COPY[:3],
    "void thrust::uninitialized_fill_n<int*>(int*)",
    "thrust::detail::vector_base<int>::vector_base(int)",
]
OWN = ["cudaStreamSynchronize", "solve()", *COPY[2:]]


@pytest.mark.parametrize(
    ("names", "kind", "expected"),
    [
        (COPY, "synchronization", ThrustCall.AT_THE_END),
        (REDUCE, "synchronization", ThrustCall.WITHIN),
        (TEMPORARY, "free", ThrustCall.TEMPORARY),
        (VECTOR, "free", ThrustCall.VECTOR),
        (SHARED, "free", ThrustCall.VECTOR),
        (BLOCK, "free", None),
        (ASSIGNED, "synchronization", ThrustCall.COPY),
        (COPIED, "synchronization", ThrustCall.COPY),
        (ELEMENT, "synchronization", ThrustCall.COPY),
        (READ, "synchronization", ThrustCall.COPY),
        (FETCHED, "synchronization", ThrustCall.WITHIN),
        (FILLED, "synchronization", ThrustCall.FILLED),
        (OWN, "synchronization", None),
        (["cudaStreamSynchronize", "main"], "synchronization", None),
    ],
    ids=[
        "at the end",
        "within",
        "temporary memory",
        "memory of a vector",
        "a shared vector",
        "a block",
        "a vector assigned",
        "a copy",
        "an element",
        "an element read",
        "a result fetched",
        "a vector made",
        "called by an algorithm",
        "without Thrust",
    ],
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
