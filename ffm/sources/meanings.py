"""What a call of the runtime or the driver means, by its name: the corresponding row of the driver catalogue."""

from __future__ import annotations

import re
from functools import cache

from ffm.driver.catalogue import DriverFunction, load_catalogue


@cache
def meaning(name: str) -> DriverFunction | None:
    """Return the driver function that does the same as a call; None if it is in no table."""
    catalogue = load_catalogue()
    plain = re.sub(r"_(ptsz|ptds)$", "", name)
    for start, (now, later) in catalogue.same_family.items():
        if plain.startswith(start):
            return _driver_functions()[later if plain.endswith("Async") else now]
    return _driver_functions().get(catalogue.same_as.get(name, re.sub(r"^cuda(?=[A-Z])", "cu", name)))


@cache
def _driver_functions() -> dict[str, DriverFunction]:
    found: dict[str, DriverFunction] = {}
    for function in load_catalogue().functions:
        found[function.name] = function
        found.setdefault(re.sub(r"_v\d+$", "", function.name), function)
    return found
