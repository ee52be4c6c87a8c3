"""Which calls Thrust's algorithms make. The program cannot remove these, but can choose what makes fewer of them.

Source: NVIDIA's documentation of Thrust (`par_nosync`, policies with allocators) and CUB, and the names of functions in
Thrust's headers.
"""

from __future__ import annotations

from collections.abc import Sequence
from enum import StrEnum

from ffm.model.groups.names import DROPPED, base_name
from ffm.results.documents.analysis import Analysis
from ffm.results.documents.site import Site
from ffm.results.documents.stacks import Frame


class ThrustCall(StrEnum):
    """What Thrust makes a call for. The text says what a program can do about it."""

    AT_THE_END = (
        "Thrust waits at the end of the algorithm. Give it the policy thrust::cuda::par_nosync, or "
        "thrust::cuda::par_nosync.on(stream), as its first argument (Thrust 1.16 and newer): it then returns at once."
    )
    WITHIN = (
        "Thrust waits within the algorithm, with any policy. The functions of CUB, such as cub::DeviceReduce, do not "
        "wait: they leave their results on the GPU."
    )
    COPY = (
        "Thrust waits after it has copied between the host and the device. To go on without that, copy with "
        "cudaMemcpyAsync between pinned memory and thrust::raw_pointer_cast(vector.data())."
    )
    FILLED = (
        "Thrust waits after it has filled or copied a vector, which takes no policy. Keep the vector instead of making "
        "a new one, or fill memory of cudaMalloc with thrust::fill and the policy thrust::cuda::par_nosync."
    )
    VECTOR = (
        "Or give the Thrust vector an allocator on cudaMallocAsync and cudaFreeAsync on the stream that uses it: they "
        "do not wait. Raise cudaMemPoolAttrReleaseThreshold of the device's pool so that the pool keeps the memory."
    )
    TEMPORARY = (
        "Thrust frees the algorithm's temporary memory. Give the algorithm an allocator that keeps it, as in "
        "thrust::cuda::par(allocator), which may be followed by .on(stream)."
    )


_OPTIONAL = ("::synchronize_optional", "::synchronize_stream_optional")
"""Functions of Thrust that do not wait with `par_nosync`."""
_COPIES = ("::cross_system_copy", "::cross_system_copy_n")
"""Functions of Thrust that copy between the host and the device."""
_ASKED_TO_COPY = ("::copy", "::copy_n")
"""Algorithms that do nothing else."""
_VECTOR, _STORAGE = "::vector_base", "::contiguous_storage"
_REFERENCES = ("::device_reference", "::reference<")
"""An element of a vector, which each use on the host copies."""


def thrust_call(analysis: Analysis, site: Site) -> ThrustCall | None:
    """Return what Thrust makes a site's call for; None if it does not, or that has no advice of its own."""
    if not 0 <= site.stack < len(analysis.stacks):
        return None
    names = _of_thrust(analysis.stacks[site.stack].frames)
    if site.kind == "synchronization" and any("cuda_cub::" in name for name in names):
        return _waits_for(names)
    if site.kind != "free":
        return None
    if any(name.endswith("::return_temporary_buffer") for name in names):
        return ThrustCall.TEMPORARY
    return ThrustCall.VECTOR if any(_STORAGE in name or _VECTOR in name for name in names) else None


def _waits_for(names: list[str]) -> ThrustCall:
    """Return what Thrust waits for, from its functions on the stack."""
    of_vector = any(part in name for name in names for part in (_VECTOR, *_REFERENCES))
    if any(name.endswith(_COPIES) for name in names) and (of_vector or names[-1].endswith(_ASKED_TO_COPY)):
        return ThrustCall.COPY
    if not any(name.endswith(_OPTIONAL) for name in names):
        return ThrustCall.WITHIN
    return ThrustCall.FILLED if of_vector else ThrustCall.AT_THE_END


def _of_thrust(frames: Sequence[Frame]) -> list[str]:
    """Return the names of Thrust's functions on a stack up to the first function outside it, without the runtime and
    CUB, which make the call.
    """
    found: list[str] = []
    for frame in frames:
        name = base_name(frame.function).removesuffix(DROPPED)
        if name.startswith("thrust::"):
            found.append(name)
        elif found or (frame.line and not name.startswith(("cub::", "cuda"))):
            break
    return found
