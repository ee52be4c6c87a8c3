"""How much of each download the CPU touched before it was overwritten or freed, according to stage 3's watch."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from ffm.driver.vocabulary import Direction, Kind
from ffm.evidence.calls import calls_where
from ffm.evidence.program_order import access_rows
from ffm.evidence.stretches import is_limited
from ffm.instrument.recording.layout import constant
from ffm.instrument.recording.reader import Recording
from ffm.results.columnar.columns import LONGEST, Column, Columns, Table, number_of, size
from ffm.results.documents.site import DownloadUse

DOWNLOADS = Table(
    {
        "stack": number_of("stacks"),
        "bytes": size(),
        "touched": size(),
        "first": Column(np.int64, least=0, most=LONGEST),
        "last": Column(np.int64, least=0, most=LONGEST),
    },
    {
        "are at most all bytes touched": lambda columns: bool((columns["touched"] <= columns["bytes"]).all()),
        "does the first touch come before the last": lambda columns: bool((columns["first"] <= columns["last"]).all()),
    },
)
"""What `followed_downloads` returns, and where each row's download was called."""


def followed_downloads(columns: Columns, recording: Recording) -> tuple[NDArray[np.int64], Columns]:
    """Return the rows of the downloads of a process that were followed to their end, and how much of each was touched.

    The other columns are the `bytes` that arrived and at most how many of them were `touched`; the touched bytes are
    within `first` to `last`, counted from the start of the download (both 0 if nothing was touched).
    """
    extents = recording.extents
    rows = access_rows(columns, extents)
    known = rows >= 0
    extents, rows = extents[known], rows[known]
    followed = extents["kind"] == constant("FFM_EXTENT_FOLLOWED")
    lost = np.unique(rows[extents["kind"] == constant("FFM_EXTENT_LOST")])
    downloads = np.setdiff1d(rows[followed], lost)
    touched = (extents["kind"] == constant("FFM_EXTENT_TOUCHED")) & np.isin(rows, downloads)
    followed &= np.isin(rows, downloads)
    number = np.searchsorted(downloads, rows)
    count = len(downloads)
    brought = np.bincount(number[followed], weights=extents["bytes"][followed], minlength=count).astype(np.int64)
    begin = np.full(count, np.iinfo(np.int64).max)
    np.minimum.at(begin, number[followed], extents["start"][followed].astype(np.int64))

    of = number[touched]
    start = extents["start"][touched].astype(np.int64) - begin[of]
    end = start + extents["bytes"][touched].astype(np.int64)
    first, last = np.full(count, np.iinfo(np.int64).max), np.zeros(count, np.int64)
    np.minimum.at(first, of, start)
    np.maximum.at(last, of, end)
    covered = _covered(of, start, end, last)
    return downloads, {
        "bytes": brought,
        "touched": np.minimum(covered, brought),
        "first": np.where(covered > 0, first, 0),
        "last": last,
    }


def watched_to_their_end(
    columns: Columns, recording: Recording, unread: NDArray[np.bool_]
) -> tuple[NDArray[np.int64], Columns]:
    """Return what `followed_downloads` does, with the other downloads of which nothing was touched in the whole run
    (`unread_downloads`): for example because the next one overwrote them before any wait.
    """
    rows, used = followed_downloads(columns, recording)
    others = np.setdiff1d(np.flatnonzero(unread), rows)
    order = np.argsort(np.concatenate((rows, others)), kind="stable")
    added = {"bytes": columns["bytes"][others].astype(np.int64)}
    nothing = np.zeros(len(others), np.int64)
    return np.concatenate((rows, others))[order], {
        name: np.concatenate((column, added.get(name, nothing)))[order] for name, column in used.items()
    }


def unread_downloads(columns: Columns, recording: Recording, accesses: NDArray[np.void]) -> NDArray[np.bool_]:
    """Return which operations are downloads of which the CPU is known to have touched nothing in the whole run: from
    their call on, any touch would have been recorded, and none was.

    `accesses` are those to the memory of the process's operations, by its forked children as well.
    """
    unread = np.zeros(len(columns["start"]), np.bool_)
    if is_limited(recording) or recording.finished:
        return unread
    extents = recording.extents
    rows = access_rows(columns, extents)
    known, intact = rows >= 0, extents["kind"] == constant("FFM_EXTENT_INTACT")
    doubtful = (extents["kind"] == constant("FFM_EXTENT_TOUCHED")) | (extents["kind"] == constant("FFM_EXTENT_LOST"))
    bytes_ = np.zeros(len(unread), np.int64)
    np.add.at(bytes_, rows[known & intact], extents["bytes"][known & intact].astype(np.int64))
    if not bytes_.any():
        return unread
    unread[:] = (bytes_ > 0) & (bytes_ >= columns["bytes"])
    unread[rows[known & doubtful]] = False
    touches = accesses[
        (accesses["kind"] < constant("FFM_ACCESS_CLOCK")) & (accesses["kind"] != constant("FFM_ACCESS_RELEASED"))
    ]
    touched = access_rows(columns, touches)
    unread[touched[touched >= 0]] = False
    return unread


def _covered(
    of: NDArray[np.int64], start: NDArray[np.int64], end: NDArray[np.int64], last: NDArray[np.int64]
) -> NDArray[np.int64]:
    """Return how many bytes the intervals of each download cover; they may overlap. `last` is the end of the
    last one.
    """
    order = np.lexsort((start, of))
    base = (np.cumsum(last) - last)[of[order]]  # one download after the other
    low, high = base + start[order], base + end[order]
    before = np.maximum.accumulate(np.append(-1, high))[:-1]
    new = np.maximum(high - np.maximum(low, before), 0)
    return np.bincount(of[order], weights=new, minlength=len(last)).astype(np.int64)


def is_download(columns: Columns) -> NDArray[np.bool_]:
    """Return whether each operation is a transfer from the device to the host."""
    functions, flags = columns["function"], columns["flags"]
    found = calls_where(functions, lambda function: function.kind is Kind.TRANSFER)
    rows = np.flatnonzero(found)
    to_host = (flags[rows] & constant("FFM_OPERATION_HOST_DESTINATION")) != 0
    to_host &= (flags[rows] & constant("FFM_OPERATION_HOST_SOURCE")) == 0
    named = calls_where(functions[rows], lambda function: function.direction is Direction.DEVICE_TO_HOST)
    found[rows] = to_host | named
    return found


def download_uses(columns: Columns, table: Columns, watch: str) -> dict[int, DownloadUse]:
    """Sum the followed downloads of each site; sites are stack numbers of `columns`, those of `table` translated.

    Sites that download have an entry even if nothing was followed.
    """
    counts = np.bincount(columns["stack"][is_download(columns)])
    sites = np.flatnonzero(counts)
    order = np.argsort(table["stack"], kind="stable")
    begin, end = (np.searchsorted(table["stack"], sites, side, sorter=order) for side in ("left", "right"))
    uses: dict[int, DownloadUse] = {}
    for number, (site, of) in enumerate(zip(sites.tolist(), counts[sites].tolist(), strict=True)):
        mine = order[begin[number] : end[number]]
        if not len(mine):
            uses[site] = DownloadUse(occurrences=0, of=of, watch=watch)
            continue
        used = mine[table["touched"][mine] > 0]
        uses[site] = DownloadUse(
            occurrences=len(mine),
            of=max(of, len(mine)),
            watch=watch,
            bytes=int(table["bytes"][mine].sum()),
            touched_bytes=int(table["touched"][mine].sum()),
            first=int(table["first"][used].min()) if len(used) else 0,
            last=int(table["last"][used].max()) if len(used) else 0,
            untouched=len(mine) - len(used),
        )
    return uses
