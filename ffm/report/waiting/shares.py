"""The kinds of time on a critical path, and a line that shows them."""

from __future__ import annotations

from dataclasses import dataclass

from ffm.report.numbers import Scale, percent
from ffm.results.documents.analysis import PathShares


@dataclass(frozen=True, slots=True)
class Share:
    """A kind of time on the path."""

    name: str
    seconds: float
    percent: float


MEANINGS = {
    "CPU": "the program's own work between traced calls",
    "calls": "traced calls, without their waits",
    "kernels": "the GPU computes",
    "transfers": "the GPU copies or sets memory",
    "overhead": "waking the CPU, starting the GPU's work",
    "unknown": "waits for nothing that the trace shows",
}


def shares_of(path: PathShares) -> list[Share]:
    """Return the kinds of time with their shares of the path, in the order of `MEANINGS`."""
    seconds = (path.cpu_s, path.calls_s, path.kernels_s, path.transfers_s, path.overhead_s, path.unknown_s)
    scale = Scale(sum(seconds))
    return [Share(name, each, scale.share(each)) for name, each in zip(MEANINGS, seconds, strict=True)]


def in_one_line(shares: list[Share]) -> str:
    """Return `kernels 52.36 %, calls 18.85 %, ...`, the largest first."""
    ordered = sorted((share for share in shares if share.percent >= 0.01), key=lambda share: -share.percent)
    return ", ".join(f"{share.name} {percent(share.percent)}" for share in ordered)
