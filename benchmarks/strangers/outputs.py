"""What programs print: their own check, and whether two runs printed the same but for times."""

from __future__ import annotations

import math
import re

_FAILED = re.compile(
    r"\b(fail(ed|s|ure|ures)?|mismatch(es|ed)?|incorrect|wrong|not (match|equal|correct)|do(es)?n'?t match|"
    r"invalid results?|unsuccessful|no such file)\b|\b(cuda)? ?error\b(?=.*(\bat\b|:.*[a-z]{4}))",
    re.IGNORECASE,
)
_PASSED = re.compile(
    r"\b(pass(ed)?|success(ful|fully)?|correct|verified|succeeded|match(es|ed)?|identical|ok|okay)\b", re.IGNORECASE
)
_REFUSED = re.compile(r"^vgpu: ", re.MULTILINE)
"""What the virtual GPU says about code that it cannot run: a program need not notice."""
_NONE_FAILED = re.compile(
    r"\b(0|no|zero) +(errors?|mismatch(es)?|fail(ed|ures?)?|wrong|incorrect)\b|"
    r"\b(errors?|mismatch(es)?|fail(ed|ures?)|wrong|incorrect)\b[^\n:=]{0,20}"
    r"([:=]? *0(\.0*)?( *%| out of \d+)?\s*$|[:=] *0(\.0*)?(?![\w.]))",
    re.IGNORECASE | re.MULTILINE,
)
_CLOCK = re.compile(r"\b\d{1,2}:\d{2}(:\d{2}(\.\d+)?)?\b")
_NUMBER = re.compile(r"[-+]?(\d+\.?\d*|\.\d+)(e[-+]?\d+)?", re.IGNORECASE)
_THOUSANDS = re.compile(r"(?<=\d),(?=\d{3}(?!\d))")
_TIMED = re.compile(
    r"(?:\b|_)(time|times|timing|elapsed|took|duration|seconds?|secs?|ms|us|ns|microseconds?|milliseconds?|s\b|[gmkt]?b/s|[gmt]i?b(ytes)?/s|"
    r"[gmt]?flops?|bandwidth|throughput|speed-?up|rate|per second|/s|fps|latency|average|avg|cycles|"
    r"performance)(?:\b|_)",
    re.IGNORECASE,
)


def own_check(status: int | None, text: str) -> str:
    """Return `passed` or `failed` by the program's own words and exit status; `none` if it ends well without a word."""
    if status != 0 or _REFUSED.search(text):
        return "failed"
    remaining, none_failed = _NONE_FAILED.subn("", text)
    if _FAILED.search(remaining):
        return "failed"
    return "passed" if none_failed or _PASSED.search(remaining) else "none"


def first_difference(one: str, other: str, again: str | None = None, tolerance: float = 1e-5) -> str:
    """Return in words the first difference of two outputs that is not a time; empty if there is none.

    `again` is what one more run of the first program printed. Numbers are ignored in lines about times, and in lines
    whose numbers differ in `again`. Elsewhere they may differ by the tolerance, relative to their size, because sums by
    atomic operations come in any order.
    """
    lines, others = (_CLOCK.sub("", text).splitlines() for text in (one, other))
    if len(lines) != len(others):
        return f"{len(lines)} lines became {len(others)}"
    repeated = lines if again is None else _CLOCK.sub("", again).splitlines()
    if len(repeated) != len(lines):
        repeated = lines
    context = False
    for number, (line, changed) in enumerate(zip(lines, others, strict=True), 1):
        timed = bool(_TIMED.search(line)) or not _close(line, repeated[number - 1], tolerance)
        if _words(line, timed) != _words(changed, timed) or not (timed or context or _close(line, changed, tolerance)):
            return f"line {number}: {line.strip()[:80]!r} became {changed.strip()[:80]!r}"
        # A line of times may be headed by one that names its columns.
        context = timed and not _NUMBER.search(line)
    return ""


def _words(line: str, timed: bool) -> list[str]:
    """Return what a line says beside its numbers; a time or a rate may have more groups of digits than another."""
    return _NUMBER.sub(" ", _THOUSANDS.sub("", line) if timed else line).split()


def _close(line: str, other: str, tolerance: float) -> bool:
    pairs = zip(_NUMBER.finditer(line), _NUMBER.finditer(other), strict=False)
    return all(
        math.isclose(float(one[0]), float(two[0]), rel_tol=tolerance, abs_tol=tolerance * tolerance)
        for one, two in pairs
    )
