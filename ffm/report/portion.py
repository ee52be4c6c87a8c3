"""Which portion of a run was measured, in words."""

from __future__ import annotations

from ffm.results.documents.analysis import Analysis
from ffm.results.documents.run import Portion


def portion_sentence(analysis: Analysis) -> str:
    """Return two sentences: what was measured, and what is assumed of the rest; empty for a whole run."""
    portion = analysis.portion
    if portion is None:
        return ""
    if portion.last_s is not None:
        return (
            f"Only the last {portion.last_s:g} s of the run were kept. {portion.dropped:,} operations before them were "
            "left out: no saving in them is counted, and what they allocated or created is not known."
        )
    if portion.cut:
        then = "left running" if portion.left else "ended by ffm"
        return (
            f"The program was measured for {portion.measured_s:.2f} s from its first driver call, and then {then}. "
            "Waits on which later work may rely are not judged, and count as needed."
        )
    rest = max(analysis.wall_s - portion.measured_s, 0.0)
    return (
        f"Only a portion of the run was measured: {_which(portion)}, which took {portion.measured_s:.2f} s. The other "
        f"{rest:.2f} s are assumed to stay as they are: nothing in them is judged, and no saving in them is counted."
        f"{_scaled(portion)}"
    )


def _which(portion: Portion) -> str:
    if portion.ranges is not None:
        named = f" {portion.ranges!r}" if portion.ranges else ""
        sample = f", a sample of each {portion.every:,}th" if portion.every > 1 else ""
        return f"{portion.judged:,} of {portion.iterations:,} iterations{named}{sample}"
    if portion.start_s is None:
        end = "the end" if portion.end_call is None else f"call {portion.end_call:,}"
        return f"from call {portion.first_call:,} to {end}"
    end = "the end" if portion.end_s is None else f"{portion.end_s:g} s"
    return f"from {portion.start_s:g} s to {end}, counted from the first driver call"


def _scaled(portion: Portion) -> str:
    if portion.every == 1 or portion.judged == 0:
        return ""
    return (
        f" If all iterations are like the measured ones, the whole run saves {portion.iterations / portion.judged:.1f} "
        "times as much as is shown."
    )
