"""Results as the viewing commands read them: stage 5's document, and the timeline next to it.

Most views need only the document, and importing the model's modules takes longer than reading it. So the methods that
need these modules import them.
"""

from __future__ import annotations

import functools
from collections.abc import Collection
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Literal

import msgspec

from ffm.errors import FfmError
from ffm.regular_file import read_regular
from ffm.results.documents.analysis import Analysis, SequenceOperation
from ffm.results.documents.benefit import Benefit
from ffm.results.documents.files import MOST_BYTES, read_owned
from ffm.results.documents.plain import plain_document
from ffm.results.folder.identity import newer_run
from ffm.results.folder.paths import ResultsFolder
from ffm.results.variation import Variation
from ffm.results.wholes import at_least

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from ffm.model.device import DeviceWork
    from ffm.model.estimators.replay import Replayed
    from ffm.model.gpu_times.timelines import Inference
    from ffm.model.groups.sequences import Membership
    from ffm.model.timeline import Timeline
    from ffm.results.estimates import Estimates

ANALYSIS_FILE = "analysis.json"
TIMELINE_FILE = "timeline.arrow"
Estimator = Literal["replay", "carry", "bound"]


class Results:
    """A results folder. The document is read at once, the timeline on demand."""

    def __init__(self, folder: Path, document: Analysis, *, own: bool = False, newer: str = "") -> None:
        self.folder = folder
        self.document = plain_document(document)
        """With all of its texts made plain (`ffm.plain_text`)."""
        self.command = document.command
        """What was measured, word for word."""
        self.own = own
        """Whether this user measured them."""
        self.newer = newer
        """What was started in the folder since, as a sentence; empty if they are the latest."""

    @functools.cached_property
    def _columns(self) -> tuple[Timeline, Membership, DeviceWork | None]:
        from ffm.model.groups.sequences import Membership, offsets_of
        from ffm.results.columnar.timeline_file import load_results_timeline

        document = self.document
        lengths = [len(sequence.operations) for sequence in document.sequences]
        timeline, line, work = load_results_timeline(
            self.folder / document.timeline,
            document.checksums.get("timeline", ""),
            {"sites": len(document.sites), "lines": sum(lengths)},
        )
        return timeline, Membership(line, offsets_of(lengths)), work

    @functools.cached_property
    def estimates(self) -> Estimates:
        """The estimators for this run."""
        return self._estimates()

    @functools.cached_property
    def corrected(self) -> Estimates:
        """The estimators for what `ffm apply-remedy` does: the GPU keeps the order that removed waits promised, what
        downloads fetch is copied from staging memory, and memory is kept to the process's end.
        """
        return self._estimates(corrected=True, keeps_memory=True)

    @functools.cached_property
    def corrected_and_freed(self) -> Estimates:
        """The same if the memory is freed in the end, as long as that takes."""
        return self._estimates(corrected=True)

    @functools.cached_property
    def _inference(self) -> Inference:
        from ffm.results.columnar.gpu_times_file import load_gpu_times

        assert self.work is not None
        return load_gpu_times(self.document, self.folder, self.timeline, self.work)

    def _estimates(self, *, corrected: bool = False, keeps_memory: bool = False) -> Estimates:
        from ffm.results.estimates import Estimates

        document = self.document
        return Estimates(
            self.timeline,
            self.work,
            self.copy_time,
            document.wall_s,
            None if self.work is None else lambda: self._inference,
            self._variation,
            document.pinning,
            by_chance=() if document.matching is None else document.matching.by_chance,
            keeps_memory=keeps_memory,
            fences=corrected,
            copies=corrected,
        )

    @functools.cached_property
    def presumed(self) -> Estimates:
        """The same for every wait and transfer of a run that proves nothing: what doing without saves at most."""
        from ffm.results.presumed import Presumed

        given = None if self.work is None else lambda: self._inference.if_anything_is_late()
        return Presumed(self.timeline, self.work, self.copy_time, self.document.wall_s, given, self._variation)

    @property
    def _variation(self) -> Variation:
        explained = self.document.explained
        return Variation.of(self.document.costs, 0.0 if explained is None else explained.probes_s, self.work)

    @property
    def work(self) -> DeviceWork | None:
        """What the rows do on the GPU; None for imported results."""
        return self._columns[2]

    @property
    def timeline(self) -> Timeline:
        """The rows that the model works on."""
        return self._columns[0]

    @functools.cached_property
    def copy_time(self) -> NDArray[np.int64]:
        """For each site, the minimum nanoseconds that the GPU copies for one of its transfers."""
        import numpy as np

        return np.array([site.copy_ns for site in self.document.sites], np.int64)

    @functools.cached_property
    def bound_s(self) -> NDArray[np.float64]:
        """For each site, its seconds by `bound`, over all processes."""
        import numpy as np

        from ffm.model.estimators.bound import bound_by_stack

        sites = self.document.sites
        if self.work is None:
            return np.array([site.benefit.bound_s for site in sites])
        each = np.arange(len(sites), dtype=np.int32)
        return bound_by_stack(self.estimates.sums(self.timeline.site, each, len(sites)))

    @property
    def membership(self) -> Membership:
        """Which rows belong to which of the document's sequences, numbered from 0."""
        return self._columns[1]


def open_results(folder: Path) -> Results:
    """Read the last complete analysis in a folder. A newer measurement does not touch it before it is complete, too.

    Raises:
        DocumentError: There is none, or it is truncated, edited, or of another version; one sentence says so.
    """
    document, own = read_owned(Analysis, ResultsFolder(folder).document("analysis"))
    return Results(folder, document, own=own, newer=newer_run(folder, "analysis", document))


class _Measured(msgspec.Struct):
    command: list[str]


def command_measured_in(folder: Path) -> list[str]:
    """Return the command whose analysis is in a folder, unchecked; nothing if there is none that can be read."""
    try:
        return msgspec.json.decode(read_regular(folder / ANALYSIS_FILE, MOST_BYTES), type=_Measured).command
    except (OSError, ValueError, msgspec.MsgspecError):
        return []


def benefit_of_correcting(results: Results, sites: Collection[int], *, questions: int = 1) -> Benefit:
    """Return what correcting these sites together saves: the GPU keeps the order that removed waits promised, transfers
    go through memory that is pinned already, and memory that nothing takes over is left to the process's end. It is
    expected that the driver needs as long to free it then as the calls do, and the interval ends where it needs no
    time.

    `questions` says of about how many sets of sites this is asked.
    """
    bound_s = _bound_s(results, [list(sites)])

    def answer(estimates: Estimates) -> Benefit:
        if estimates.replay is not None:
            estimates.replay.expect(questions)
        return estimates.of_sites([list(sites)], bound_s, pinned=True)[0]

    benefit = answer(results.corrected)
    if not _any_kept(results, sites):
        return benefit
    return msgspec.structs.replace(answer(results.corrected_and_freed), high_s=benefit.high_s)


def _any_kept(results: Results, sites: Collection[int]) -> bool:
    """Return whether some of the sites free memory that nothing takes over."""
    import numpy as np

    if results.work is None:
        return False
    kept = np.flatnonzero(results.work.partner == np.arange(len(results.work.partner)))
    return bool(np.isin(results.timeline.site[kept], list(sites)).any())


def benefits_of_sites(results: Results, groups: list[list[int]]) -> list[Benefit]:
    """Return what fixing each group of sites together saves, as for folds; no site is in two groups."""
    sites = results.document.sites
    found = results.estimates.of_sites(groups, _bound_s(results, groups))
    return [
        at_least(benefit, [sites[site].benefit for site in members])
        for benefit, members in zip(found, groups, strict=True)
    ]


def _bound_s(results: Results, groups: list[list[int]]) -> NDArray[np.float64]:
    import numpy as np

    bound_s = results.bound_s
    return np.array([bound_s[members].sum() for members in groups])


def doing_without(results: Results, site: int) -> Replayed | None:
    """Return what removing a site's waits would save; None if the site's benefit says that, or there is no trace.

    `site` counts from 0; a site that does not exist has no waits to remove.
    """
    if not 0 <= site < len(results.document.sites):
        return None
    from ffm.model.estimators.replay import Replayed

    found = results.document.sites[site]
    for wait in results.document.unproved:
        if wait.site == site:
            return Replayed(wait.saving_s, wait.low_s, wait.high_s)
    needed = any(verdict.kind in ("required", "misplaced") for verdict in found.synchronization)
    if not (needed and found.wait_s > 0) or results.work is None:
        return None
    return results.estimates.without((results.timeline.site == site) & (results.timeline.wait > 0))


@dataclass(frozen=True, slots=True)
class SubsequenceAnswer:
    """What fixing operations `start` to `end` of a sequence saves, numbered from 1 as on the screen (Figure 5.4).

    `seconds` and `percent` (of the run) are by `estimator`; `benefit` has all estimators' seconds.
    """

    sequence: int
    start: int
    end: int
    estimator: Estimator
    seconds: float
    percent: float
    benefit: Benefit
    operations: list[SequenceOperation]


def subsequence(
    results: Results, sequence: int, start: int, end: int, estimator: Estimator | None = None
) -> SubsequenceAnswer:
    """Estimate a part of a sequence over all its recurrences, without a new run. Numbers start at 1.

    The default is the document's own estimator.

    Raises:
        FfmError: There is no such sequence, it has no such part, or imported results have no replay.
        DocumentError: The timeline next to the document cannot be read.
    """
    document = results.document
    operations = sequence_operations(document, sequence)
    if not 1 <= start <= end <= len(operations):
        raise FfmError(
            f"sequence {sequence} has operations 1 to {len(operations)}, so {start} to {end} is not "
            f"part of it; `ffm sequence {sequence}` lists them."
        )
    found = document.sequences[sequence - 1]
    known = {(part.start, part.end): part.benefit for part in found.parts}
    if found.benefit.replay_s is not None:
        known[1, len(operations)] = found.benefit
    benefit = known.get((start, end))
    if benefit is None:
        benefit = results.estimates.of_rows(results.membership.rows_of(sequence - 1, start - 1, end - 1))
    chosen = estimator or ("carry" if benefit.replay_s is None else "replay")
    seconds = seconds_by(benefit, chosen)
    percent = 100.0 * seconds / document.wall_s if document.wall_s > 0 else 0.0
    return SubsequenceAnswer(sequence, start, end, chosen, seconds, percent, benefit, operations[start - 1 : end])


def sequence_operations(document: Analysis, sequence: int) -> list[SequenceOperation]:
    """Return the operations of a sequence, by its number from 1.

    Raises:
        FfmError: There is no such sequence.
    """
    if not 1 <= sequence <= len(document.sequences):
        raise FfmError(
            f"there is no sequence {sequence}: {document.application} has {len(document.sequences)}; "
            "`ffm report` lists them."
        )
    return document.sequences[sequence - 1].operations


def seconds_by(benefit: Benefit, estimator: Estimator) -> float:
    """Return a benefit's seconds by one estimator.

    Raises:
        FfmError: It has no replay.
    """
    if estimator == "replay":
        if benefit.replay_s is None:
            raise FfmError("these results have no replay because they have no trace: use --estimator carry or bound.")
        return benefit.replay_s
    return benefit.carry_s if estimator == "carry" else benefit.bound_s
