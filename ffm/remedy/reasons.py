"""Why a problem is not corrected, as facts. `ffm.report.remedies.uncorrected` puts them into words."""

from __future__ import annotations

from dataclasses import dataclass

from ffm.results.vocabulary import Because


@dataclass(frozen=True, slots=True)
class ManagedSet:
    """It sets managed memory, which the program may use once the call returns."""


@dataclass(frozen=True, slots=True)
class NeededForMore:
    """`needed` of all occurrences of a download are needed for something that a later delivery does not satisfy."""

    needed: int
    of: int
    because: Because


@dataclass(frozen=True, slots=True)
class LateCostsAsMuch:
    """Delivering a download's data later would cost as much as it saves."""


@dataclass(frozen=True, slots=True)
class ComparingCostsAsMuch:
    """Comparing an upload's bytes with the device's would cost as much as it saves."""


@dataclass(frozen=True, slots=True)
class UnseenAllocation:
    """The allocation of the memory that it frees was not observed."""


@dataclass(frozen=True, slots=True)
class OtherDestination:
    """It sends to memory whose allocation and free corrections do not follow, such as a variable of the device."""


@dataclass(frozen=True, slots=True)
class OtherAllocation:
    """The memory that it frees is allocated by calls that corrections do not keep."""

    calls: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Unmatched:
    """`occurrences` of all could not be matched between the runs."""

    occurrences: int
    of: int


@dataclass(frozen=True, slots=True)
class WaitsTooEarly:
    """Each occurrence is needed, but later."""


@dataclass(frozen=True, slots=True)
class PartlyNeeded:
    """`needed` of all occurrences are needed."""

    needed: int
    of: int


@dataclass(frozen=True, slots=True)
class WaitsReliedOn:
    """The program may rely on waits of some of its asynchronous calls."""


@dataclass(frozen=True, slots=True)
class OtherFunction:
    """No correction is known for the driver function."""

    function: str


@dataclass(frozen=True, slots=True)
class TooLarge:
    """An upload of it, or of those that it repeats, does not fit into the memory that corrections may take."""

    bytes: int
    memory_bytes: int


@dataclass(frozen=True, slots=True)
class DoesNotPay:
    """Correcting it is not expected to save more seconds than it costs."""

    saved_s: float
    cost_s: float
    together: bool
    """Whether with others like it."""
    certain: bool
    """Whether less than the estimate is compared: the least that it may save, because it is called too seldom to find
    out while it runs, or, with `entering`, what the worse half of all cases saves on average.
    """
    entering: bool
    """Whether the cost contains that of getting into the program, which cannot be taken back."""
    best: bool = False
    """Whether more than the estimate is compared: the most that it may save."""


Reason = (
    ManagedSet
    | NeededForMore
    | LateCostsAsMuch
    | ComparingCostsAsMuch
    | UnseenAllocation
    | OtherAllocation
    | OtherDestination
    | Unmatched
    | WaitsTooEarly
    | PartlyNeeded
    | WaitsReliedOn
    | OtherFunction
    | TooLarge
    | DoesNotPay
)
