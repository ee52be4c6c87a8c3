"""Proves the labels of synchronizations by removing waits and checking the output.

The waits labelled as needed must be sufficient: removing all others must not change the output. And each of them must
be necessary: removing it as well must make the output wrong.
"""

from __future__ import annotations

from tests.planted.building import Programs
from tests.planted.labels import Case, Line

REPEATS = 2
"""A correct output of a program that waits too little could be luck."""

ATTEMPTS = 10
"""A program that waits too little is correct if it was kept from its processor until the GPU was ready."""


def disproved(case: Case, programs: Programs) -> list[str]:
    """Return the contradictions between runs and labels, one sentence each; nothing if the labels are proved."""
    found: list[str] = []
    whole = programs.run(case)
    if not whole.right:
        return [f"{case.name}: with all its waits the output is wrong ({whole.ending}):\n{whole.output}"]
    waits = [line for line in case.lines.values() if line.synchronization is not None and line.name]
    spare = {line.name for line in waits if not _needed(line)}
    for _ in range(REPEATS if spare else 0):
        ran = programs.run(case, spare)
        if not ran.right:
            found.append(f"{case.name}: without {', '.join(sorted(spare))} the output is wrong:\n{ran.output}")
            break
    for line in waits:
        if _needed(line) and _proved(line):
            runs = (programs.run(case, spare | {line.name}) for _ in range(ATTEMPTS))
            ran = next((one for one in runs if not one.right), whole)
            if ran is whole:
                place = f"{case.source.name}:{line.number}"
                found.append(
                    f"{place}: without {line.name} the output of {case.variant} is still right:\n{whole.output}"
                )
    return found


def _needed(line: Line) -> bool:
    return line.synchronization is not None and line.synchronization.needed


def _proved(line: Line) -> bool:
    label = line.synchronization
    return label is not None and all(one.proved for choice in label.alternatives for one in choice)
