"""Waits of Python code that the program needs as it is written, but often could be written without: for values that
are fetched again and again, and for uploads whose source is then written again.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from ffm.evidence.transfers.allocations import pageable_memory
from ffm.instrument.recording.layout import constant
from ffm.model.codes import is_one_of
from ffm.model.grouping import parts
from ffm.model.necessity.reasons import Reason
from ffm.model.timeline import Kind, Timeline
from ffm.results.columnar.columns import Columns
from ffm.results.documents.stacks import Stack
from ffm.stages.analysis.findings import Fetching, Sending


def only_read_host_memory(columns: Columns) -> NDArray[np.bool_]:
    """Return which traced operations read host memory and write none, as uploads do."""
    source, destination = constant("FFM_OPERATION_HOST_SOURCE"), constant("FFM_OPERATION_HOST_DESTINATION")
    found = np.empty(len(columns["flags"]), np.bool_)
    for part in parts(len(found)):
        found[part] = (columns["flags"][part] & (source | destination)) == source
    return found


def fetches_of(
    reason: NDArray[np.uint8],
    keep: NDArray[np.int32],
    uploads: NDArray[np.bool_],
    timeline: Timeline,
    stacks: Sequence[Stack],
) -> Fetching | None:
    """Find, by the reasons of waits, where Python code fetches values more than once; None if it does nowhere.

    `uploads` are the transfers that only read host memory. A wait for what could not be watched that follows one of
    them may be there for its source, and is no fetch.

    The wait for them may have another before it, in the same line of the program, that it covers (`keep`): a copy to
    pageable memory waits, and so does what follows it.
    """
    if not any(map(_python_line, stacks)):
        return None
    watched = is_one_of(reason, (Reason.RESULT_USED, Reason.RESULT_USED_UNSEEN))
    unwatched = np.flatnonzero(reason == Reason.NOT_WATCHED)
    fetched = watched.copy()
    fetched[unwatched] = ~_after_upload(unwatched, _last_transfers(unwatched, timeline), uploads, timeline)
    found, lines = _often(fetched & (timeline.problem == 0), timeline, stacks)
    if not lines:
        return None
    covered = (reason == Reason.LATER_COVERS) & np.isin(keep, list(lines))
    for first, last in set(zip(timeline.site[covered].tolist(), keep[covered].tolist(), strict=True)):
        if _python_line(stacks[first]) == lines[last]:
            found[covered & (timeline.site == first) & (keep == last)] = last
    return Fetching(found, watched)


def sends_of(
    reason: NDArray[np.uint8],
    keep: NDArray[np.int32],
    uploads: NDArray[np.bool_],
    timeline: Timeline,
    stacks: Sequence[Stack],
    columns: Columns,
) -> Sending | None:
    """Find, by the reasons of waits, where Python code more than once waits for uploads whose source is then written;
    None if it does nowhere.

    Arguments as of `fetches_of`; `columns` are the traced operations. Waits for earlier uploads that such a wait covers
    belong to it, whichever lines make them: only without all of them does the CPU go on.
    """
    if not any(map(_python_line, stacks)):
        return None
    overwritten = (Reason.SOURCE_OVERWRITTEN, Reason.SOURCE_OVERWRITTEN_UNSEEN, Reason.NOT_WATCHED)
    protects = is_one_of(reason, overwritten) & (timeline.problem == 0)
    if not _often(protects, timeline, stacks)[1]:
        return None
    last = _last_transfers(np.arange(len(timeline)), timeline)
    after = _after_upload(np.arange(len(timeline)), last, uploads, timeline)
    found, lines = _often(protects & after, timeline, stacks)
    if not lines:
        return None
    covered = after & (reason == Reason.LATER_COVERS) & np.isin(keep, list(lines))
    found[covered] = keep[covered]
    pageable = np.zeros(len(timeline), np.bool_)
    pageable[pageable_memory(columns, np.unique(last[found >= 0]))[0]] = True
    return Sending(found, pageable[last])


def _often(
    waits: NDArray[np.bool_], timeline: Timeline, stacks: Sequence[Stack]
) -> tuple[NDArray[np.int32], dict[int, tuple[str, int]]]:
    """Return the site of each of the waits that Python code makes more than once at one place, -1 for other rows; and
    the line of each such site.
    """
    often = np.flatnonzero(np.bincount(timeline.site[waits], minlength=1) > 1).tolist()
    lines = {site: line for site in often if (line := _python_line(stacks[site])) is not None}
    found: NDArray[np.int32] = np.where(waits & np.isin(timeline.site, list(lines)), timeline.site, np.int32(-1))
    return found, lines


def _last_transfers(rows: NDArray[np.int64], timeline: Timeline) -> NDArray[np.int64]:
    """Return for each of some rows the last transfer up to it, itself included; the first row if there is none."""
    transfers = np.flatnonzero(timeline.kind == Kind.TRANSFER)
    return np.append(transfers, 0)[np.searchsorted(transfers, rows, side="right") - 1]


def _after_upload(
    rows: NDArray[np.int64], last: NDArray[np.int64], uploads: NDArray[np.bool_], timeline: Timeline
) -> NDArray[np.bool_]:
    """Return which of some rows come after an upload of their thread, by the last transfer up to each."""
    found: NDArray[np.bool_] = uploads[last] & (timeline.thread[last] == timeline.thread[rows])
    return found


def _python_line(stack: Stack) -> tuple[str, int] | None:
    """Return the innermost line of Python code on a stack; None if there is none."""
    return next(((frame.file, frame.line) for frame in stack.frames if frame.python), None)
