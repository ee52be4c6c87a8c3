"""What `ffm doctor` finds out: whether programs can be measured on this machine, and what would be missing."""

from __future__ import annotations

from collections.abc import Callable
from enum import StrEnum
from pathlib import Path

import msgspec

from ffm.doctor.examination import Examination, examine_driver, try_attaching
from ffm.doctor.trial import Trial, try_all
from ffm.driver.library import DriverFileError
from ffm.driver.search import NOT_FOUND, find_driver
from ffm.errors import InstrumentError
from ffm.instrument.probing.remembered import find_and_remember, known_wait_function
from ffm.instrument.probing.wait_function import WaitFunction
from ffm.instrument.probing.wait_search import nobody
from ffm.instrument.session.permissions import check_machine

FORMAT_VERSION = 1


class State(StrEnum):
    """How good a finding is."""

    GOOD = "good"
    LIMITED = "limited"
    """Measuring works, but loses something; the finding says what."""
    MISSING = "missing"
    """Nothing can be measured."""


class Finding(msgspec.Struct, frozen=True, kw_only=True):
    """One line of the diagnosis."""

    subject: str
    state: State
    says: str


class Diagnosis(msgspec.Struct, frozen=True, kw_only=True):
    """All findings."""

    version: int
    ready: bool
    """Whether a program can be measured: no finding is `missing`."""
    findings: list[Finding]
    examination: Examination | None
    wait_function: WaitFunction | None
    trials: list[Trial] | None
    """The results of hooking every export; None if that was not requested."""


def diagnose(
    driver: Path | None, *, probe: bool, every_export: bool = False, tell: Callable[[str], None] = nobody
) -> Diagnosis:
    """Examine this machine and its driver, or the library `driver`. `tell` receives the progress."""
    tell("checking this machine")
    findings = [
        Finding(subject=check.subject, state=State.GOOD if check.good else State.MISSING, says=check.says)
        for check in check_machine()
    ]
    tell("attaching to a child process")
    findings.append(_attaching())
    examination: Examination | None = None
    wait: WaitFunction | None = None
    trials: list[Trial] | None = None
    path = driver or find_driver()
    if path is None:
        findings.append(_no_driver())
    else:
        try:
            tell("hooking every function of the driver in a child process")
            # An absolute path, because the dynamic linker searches other places for a name without a slash.
            examination = examine_driver(str(path.absolute()))
            findings += _of_driver(examination)
            wait = find_and_remember(path, tell) if probe else known_wait_function(path)
            findings.append(_of_wait_function(wait))
            if every_export:
                tell("trying to hook every export")
                trials = try_all(path, tuple({point.offset for point in examination.entry_points}))
                findings.append(_of_trials(trials))
        except (InstrumentError, DriverFileError) as error:
            findings.append(Finding(subject="driver", state=State.MISSING, says=str(error)))
    return Diagnosis(
        version=FORMAT_VERSION,
        ready=all(finding.state is not State.MISSING for finding in findings),
        findings=findings,
        examination=examination,
        wait_function=wait,
        trials=trials,
    )


def _attaching() -> Finding:
    try:
        try_attaching()
    except InstrumentError as error:
        return Finding(subject="attaching", state=State.MISSING, says=str(error))
    return Finding(subject="attaching", state=State.GOOD, says="Frida attached to a child process at its start")


def _no_driver() -> Finding:
    return Finding(
        subject="driver",
        state=State.MISSING,
        says=f"{NOT_FOUND}, or name it with --driver. `ffm demo` needs none: it measures a sample on a virtual GPU",
    )


def _of_driver(found: Examination) -> list[Finding]:
    cuda = f"CUDA {found.cuda_version // 1000}.{found.cuda_version % 1000 // 10}"
    release = f"{found.release}, " if found.release else ""
    findings = [
        Finding(subject="driver", state=State.GOOD, says=f"{found.path} ({release}{cuda}, build {found.identity})"),
        _of_device(found),
        _of_hooks(found),
    ]
    unknown = [*found.unknown_exports, *dict.fromkeys(point.asked for point in found.unknown_entry_points)]
    if unknown:
        findings.append(
            Finding(
                subject="unknown functions",
                state=State.LIMITED,
                says=f"{len(unknown)} that the catalogue does not know and that will not be observed: "
                + ", ".join(unknown),
            )
        )
    return findings


def _of_device(found: Examination) -> Finding:
    advice = "see whether `nvidia-smi` lists one, and whether a container was given it. `ffm demo` needs none"
    if found.initialised != 0:
        error = f", {found.initialisation_error}" if found.initialisation_error else ""
        says = f"the driver cannot use a GPU (cuInit returns {found.initialised}{error}): {advice}"
        return Finding(subject="GPU", state=State.MISSING, says=says)
    if found.compute_capability is None:
        return Finding(subject="GPU", state=State.MISSING, says=f"the driver finds no GPU: {advice}")
    major, minor = found.compute_capability
    return Finding(
        subject="GPU", state=State.GOOD, says=f"{found.device}, compute capability {major}.{minor} (sm_{major}{minor})"
    )


def _of_hooks(found: Examination) -> Finding:
    groups = {how: len(hooks) for how, hooks in found.by_outcome().items()}
    counts = ", ".join(f"{count} {how}" for how, count in sorted(groups.items(), key=lambda group: -group[1]))
    says = f"{len(found.hooks)} functions of the driver, by how they can be observed: {counts}"
    lost = found.unhooked
    if not found.hooks or any(hook.essential for hook in lost):
        return Finding(subject="hooks", state=State.MISSING, says=says)
    return Finding(subject="hooks", state=State.LIMITED if lost else State.GOOD, says=says)


def _of_wait_function(found: WaitFunction | None) -> Finding:
    subject = "wait function"
    if found is None:
        return Finding(
            subject=subject,
            state=State.LIMITED,
            says="not searched for yet in this driver: `ffm doctor --probe` does that, and so does the first "
            "measurement",
        )
    if found.offset is None:
        return Finding(
            subject=subject,
            state=State.LIMITED,
            says=f"not found: {found.reason}. Stage 1 times the public synchronizations instead; waits inside other "
            "calls are not observed",
        )
    where = " and ".join(f"{offset:#x}" for offset in found.offsets)
    idle = f"; {', '.join(found.calls_that_did_not_wait)} did not wait" if found.calls_that_did_not_wait else ""
    busy = found.occupied_by.replace("_", " ")
    checked = f"checked with {_grouped(found.waiting_calls)} on a GPU kept busy by a {busy}{idle}"
    says = f"all waits for the GPU end at {where} in the driver; {checked}"
    limits = [
        *(f"{name} waits in its own code" for name in found.own_code),
        *(f"{name} waits elsewhere, which is not observed" for name in found.uncovered_calls),
    ]
    return Finding(
        subject=subject,
        state=State.LIMITED if limits else State.GOOD,
        says="; ".join([says, *limits]),
    )


def _grouped(calls: tuple[str, ...]) -> str:
    """Return calls like `a, b, a (spinning)` as `a, b, in spinning contexts too`."""
    names, ways = [], []
    for call in calls:
        name, _, scheduling = call.partition(" (")
        names.append(name)
        ways += [scheduling.rstrip(")")] if scheduling else []
    kinds = f", in {', '.join(dict.fromkeys(ways))} contexts too," if ways else ""
    return ", ".join(dict.fromkeys(names)) + kinds


def _of_trials(trials: list[Trial]) -> Finding:
    ways: dict[str, int] = {}
    for trial in trials:
        ways[trial.how] = ways.get(trial.how, 0) + 1
    counts = ", ".join(f"{count} {how}" for how, count in sorted(ways.items(), key=lambda way: -way[1]))
    return Finding(subject="every export", state=State.GOOD, says=f"{len(trials)} addresses: {counts}")
