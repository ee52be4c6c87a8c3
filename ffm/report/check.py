"""What the gate found, in words: one line for each violation, whatever shows them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

from ffm.gate.iterations import Spread, ThreadIterations
from ffm.gate.judgement import Exceeded, Judgement, TooMany
from ffm.gate.problems import REFUSED, CallSite, ProblemCalls, call_site
from ffm.plain_text import plain
from ffm.report.findings import findings
from ffm.report.names import below
from ffm.report.numbers import Scale, percent, plural
from ffm.results.documents.analysis import Analysis
from ffm.results.places import place

SAVINGS = ("unnecessary_seconds", "unnecessary_percent")
"""Limits of what doing without calls saves, which is known as an upper limit alone if nothing is proved."""


@dataclass(frozen=True, slots=True)
class Violation:
    """Calls of one site, on one thread, that violate the rules.

    `place` is the program's own line that makes them or leads to them, `src/solver.cu:57`, below the folder of the
    command if it is there; without debug information, library and offset.
    """

    file: str
    line: int
    place: str
    call: str
    site: int
    """Number of the site, for `ffm site`."""
    thread: int
    count: int
    seconds: float
    """What doing without them alone saves; at most, if nothing is proved."""
    percent: float
    """The same in percent of the run."""
    reason: str
    """The verdicts on the site that are problems, with their reasons."""
    proved: bool
    rule: str
    """`new`; `wait` if nothing is proved; or `count`: more calls than an entry of the allow-list allows."""
    allowed: str
    """That entry, in words; otherwise empty."""


@dataclass(frozen=True, slots=True)
class ExceededLimit:
    """A limit that is exceeded, by its key."""

    limit: str
    allowed: float
    found: float
    text: str


@dataclass(frozen=True, slots=True)
class IteratedThread:
    """The iterations of a thread. What is counted for each has a least, a median and a most."""

    thread: int
    place: str
    """Where the first one begins."""
    iterations: int
    left_out: int
    """How many more are warm-up, or the end of the thread."""
    waits: Spread
    wait_s: Spread
    seconds: Spread


@dataclass(frozen=True, slots=True)
class CheckView:
    """Everything that `ffm check` says.

    `allowed` and `known` count the sites that the allow-list and the baseline cover.
    """

    application: str
    wall_s: float
    proved: bool
    """Whether violations are proved to be unnecessary; false in quick mode."""
    passed: bool
    violations: list[Violation]
    tolerated: list[Violation]
    """New, but within the limits."""
    exceeded: list[ExceededLimit]
    allowed: int
    known: int
    iterations: list[IteratedThread] = field(default_factory=list)
    warnings: list[str] = field(default_factory=list)


def check_view(
    analysis: Analysis, judgement: Judgement, root: Path, iterations: Sequence[ThreadIterations] = ()
) -> CheckView:
    """Lay out what the gate found; files below `root` are named relative to it."""
    new = [_violation(analysis, calls, root) for calls in judgement.new]
    count = [_violation(analysis, calls, root, many) for many in judgement.too_many for calls in many.calls]
    what = "with a problem" if analysis.proves else "that waits"
    warnings = [
        f"an entry of the allow-list matches no call {what}, and can go: {plain(str(entry))} ({plain(entry.reason)})."
        for entry in judgement.unused
    ]
    if judgement.gone:
        are = "is" if judgement.gone == 1 else "are"
        gone = "no problem" if analysis.proves else "not there"
        warnings.append(
            f"{plural(judgement.gone, 'site')} of the baseline {are} {gone} any more: `ffm check --update` stores "
            "that, so that they cannot come back."
        )
    return CheckView(
        application=analysis.application,
        wall_s=analysis.wall_s,
        proved=analysis.proves,
        passed=judgement.passed,
        violations=[*count, *([] if judgement.tolerated else new)],
        tolerated=new if judgement.tolerated else [],
        exceeded=[_limit(one, proved=analysis.proves) for one in judgement.exceeded],
        allowed=len({calls.site.index for calls, _ in judgement.allowed}),
        known=len({calls.site.index for calls in judgement.known}),
        iterations=[
            IteratedThread(
                one.thread + 1,
                _own_place(call_site(analysis, one.begins_at), root) or place(analysis, one.begins_at).place,
                one.iterations,
                one.left_out,
                one.waits,
                one.wait_s,
                one.seconds,
            )
            for one in iterations
        ],
        warnings=warnings,
    )


def describe(violation: Violation, scale: Scale) -> str:
    """`cudaFree: 50 times on thread 1, 0.120 s (1.20 %): unnecessary synchronization, the CPU touches nothing …`."""
    times = "once" if violation.count == 1 else f"{violation.count:,} times"
    saving = f"{scale.seconds(violation.seconds)} ({percent(violation.percent)})"
    most = "" if violation.proved else "at most "
    text = f"{violation.call}: {times} on thread {violation.thread}, {most}{saving}: {violation.reason}"
    return f"{text}; {violation.allowed}" if violation.allowed else text


def describe_iterations(one: IteratedThread, scale: Scale) -> str:
    """`thread 1: 40 iterations from als.cu:115 on (3 left out): 5 waits each, for 0.002 s of 0.011 s ...`."""
    waits = one.waits
    spread = "each" if waits.least == waits.most else f"(least {waits.least:.0f}, most {waits.most:.0f})"
    number = "1 wait" if waits.median == 1 else f"{waits.median:g} waits"
    longest = f"longest {scale.seconds(one.wait_s.most)} of {scale.seconds(one.seconds.most)}"
    return (
        f"thread {one.thread}: {plural(one.iterations, 'iteration')} from {one.place} on ({one.left_out:,} "
        f"left out): {number} {spread}, for {scale.seconds(one.wait_s.median)} of "
        f"{scale.seconds(one.seconds.median)} ({longest})"
    )


def _violation(analysis: Analysis, calls: ProblemCalls, root: Path, many: TooMany | None = None) -> Violation:
    where = place(analysis, calls.site.index)
    file, line = calls.site.places[0]
    known = bool(file and line)
    allowed = ""
    if many is not None:
        one, has = ("in an iteration", "one") if many.by_iteration else ("on a thread", "this")
        reason = plain(many.entry.reason)
        allowed = f"allowed are {many.allowed:,} {one} ({reason}), and {has} has {many.count:,}"
    benefit = calls.benefit
    seconds = benefit.expected_s if analysis.proves else max(benefit.expected_s, benefit.high_s or 0.0)
    return Violation(
        file=file if known else "",
        line=line if known else 0,
        place=_own_place(calls.site, root) or where.place,
        call=where.call,
        site=where.site,
        thread=calls.thread + 1,
        count=calls.count,
        seconds=seconds,
        percent=Scale(analysis.wall_s).share(seconds),
        reason=_reason(analysis, calls.site.index),
        proved=analysis.proves,
        rule=_rule(analysis, many),
        allowed=allowed,
    )


def _rule(analysis: Analysis, many: TooMany | None) -> str:
    if many is not None:
        return "count"
    return "new" if analysis.proves else "wait"


def _reason(analysis: Analysis, site: int) -> str:
    if not analysis.proves and site in analysis.staged:
        return (
            "it copies from or to pageable memory, so it is not asynchronous: the CPU copies the bytes itself, and may "
            "wait; pinned memory would need neither"
        )
    if not analysis.proves:
        return "it waits for the GPU, and nothing proves that the program needs that, or does not"
    reasons = (
        f"{finding.verdict} {finding.subject}, {finding.reason}"
        for finding in findings(analysis, site)
        if finding.verdict not in REFUSED
    )
    return "; ".join(dict.fromkeys(reasons))


def _limit(exceeded: Exceeded, *, proved: bool) -> ExceededLimit:
    may_be = "is" if proved or exceeded.limit not in SAVINGS else "may be up to"
    text = f"{exceeded.limit} {may_be} {exceeded.found:.6g}, and {exceeded.allowed:.6g} is allowed"
    return ExceededLimit(exceeded.limit, exceeded.allowed, exceeded.found, text)


def _own_place(site: CallSite, root: Path) -> str:
    """Return the program's own line that leads to a site, `src/solver.cu:57`; empty if it is unknown."""
    file, line = site.places[0]
    return f"{below(file, root)}:{line}" if file and line else ""
