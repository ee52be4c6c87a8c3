"""How many examples of a property are tried: a quarter in `make test`, all in `make thorough` and `make search`."""

from __future__ import annotations

from hypothesis import HealthCheck, settings

ALL = 100
"""Hypothesis's own default."""
FEW = 25

# How fast examples are drawn depends on what else the machine does.
_ANY_SPEED = {"deadline": None, "suppress_health_check": [HealthCheck.too_slow]}


def register_profiles() -> None:
    """Let `--hypothesis-profile` select how many examples there are, and whether they are new each time."""
    settings.register_profile("few", derandomize=True, max_examples=FEW, **_ANY_SPEED)
    settings.register_profile("all", derandomize=True, max_examples=ALL, **_ANY_SPEED)
    settings.register_profile("search", derandomize=False, max_examples=ALL, **_ANY_SPEED)
    # The same code always gets the same examples; `make search` looks for new ones.
    settings.load_profile("few")


def examples(number: int) -> int:
    """Return how many of a property's examples to try, of so many in all."""
    return max(1, number * settings.default.max_examples // ALL)
