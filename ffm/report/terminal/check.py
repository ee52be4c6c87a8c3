"""The screen of `ffm check`: one line for each violation, not wrapped, as compilers print them."""

from __future__ import annotations

from collections.abc import Iterator

from ffm.report.check import CheckView, describe, describe_iterations
from ffm.report.numbers import Scale, plural


def check_lines(view: CheckView) -> Iterator[str]:
    """Yield the lines."""
    scale = Scale(view.wall_s)
    for one in view.violations:
        yield f"{one.place}: {describe(one, scale)}"
    for one in view.tolerated:
        yield f"{one.place}: within the limits: {describe(one, scale)}"
    for limit in view.exceeded:
        yield limit.text
    for thread in view.iterations:
        yield describe_iterations(thread, scale)
    for warning in view.warnings:
        yield f"warning: {warning}"
    parts = [plural(len({one.site for one in view.violations}), "site") + " against the rules"]
    parts += [plural(len(view.exceeded), "limit") + " exceeded"] * bool(view.exceeded)
    parts += [plural(len({one.site for one in view.tolerated}), "new site") + " within the limits"] * bool(
        view.tolerated
    )
    parts += [f"{view.known:,} in the baseline"] * bool(view.known)
    parts += [f"{view.allowed:,} allowed"] * bool(view.allowed)
    yield f"{view.application} {'passes' if view.passed else 'fails'}: {', '.join(parts)}"
