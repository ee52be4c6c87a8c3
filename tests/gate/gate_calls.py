"""Calls with problems, as the gate's rules see them."""

from __future__ import annotations

from ffm.gate.problems import CallSite, Identity, ProblemCalls
from ffm.results.documents.benefit import Benefit


def a_site(
    index: int = 0, call: str = "cudaFree", caller: str = "solve", line: int = 10, issue: str = "synchronization"
) -> CallSite:
    """A site at `/src/solve.cu`, called by `main`."""
    return CallSite(
        index=index,
        identity=Identity(call, (issue,), (caller, "main")),
        calls=(call, "cuMemFree_v2"),
        callers=(f"void {caller}<int>(float*)", caller),
        places=(("/src/solve.cu", line),),
        frames=((call, "libcudart.so"), (caller, "solve.cu", "solver"), ("main", "main.cpp", "solver")),
    )


def calls_of(site: CallSite, count: int = 100, thread: int = 0, seconds: float = 1.0) -> ProblemCalls:
    """Its calls on one thread."""
    return ProblemCalls(site, thread, count, Benefit(carry_s=seconds, bound_s=seconds))
