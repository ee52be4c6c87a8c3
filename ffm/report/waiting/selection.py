"""Which regions of a run a user's words name."""

from __future__ import annotations

from collections.abc import Sequence

from ffm.errors import FfmError
from ffm.results.documents.waiting import Waiting

WHOLE_GPU = "GPU"
"""The name for all of the GPU's work."""


def matching_regions(waiting: Waiting, wanted: str) -> list[int]:
    """Return the regions with a number, else those with a name or place, else those whose names contain the words.

    Raises:
        FfmError: There is none.
    """
    regions = waiting.regions
    if wanted == WHOLE_GPU:
        numbers = [number for number, region in enumerate(regions) if region.kind in ("kernel", "transfer")]
    elif wanted.isdecimal():
        numbers = [int(wanted) - 1] if 1 <= int(wanted) <= len(regions) else []
    else:
        names = [region.full_name for region in regions]
        exact = [number for number, region in enumerate(regions) if wanted in (region.name, region.place)]
        exact = [number for number, name in enumerate(names) if name == wanted] or exact
        numbers = exact or [number for number, name in enumerate(names) if wanted in name]
    if not numbers:
        raise FfmError(
            f"no region has the number or name {wanted!r}: this run has {len(regions)} regions; `ffm path --all` lists "
            "them."
        )
    return numbers


def listed_regions(waiting: Waiting, numbers: Sequence[int]) -> str:
    """Return the first of some regions with their numbers, in words."""
    first = "; ".join(f"{number + 1} ({waiting.regions[number].full_name})" for number in numbers[:5])
    return first + (f"; and {len(numbers) - 5} more" if len(numbers) > 5 else "")
