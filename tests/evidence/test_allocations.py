"""Links between what a call frees or transfers and where that memory is allocated, from made-up traces."""

from __future__ import annotations

from typing import Any

import numpy as np

from ffm.driver.catalogue import load_catalogue
from ffm.evidence.transfers.allocations import allocation_links
from ffm.instrument.recording.layout import constant
from ffm.model.grouping import PART_ROWS
from ffm.results.columnar.columns import Columns

HOST_SOURCE = constant("FFM_OPERATION_HOST_SOURCE")


def trace(*rows: dict[str, Any]) -> Columns:
    """Columns of one process from rows of (function, stack, destination, source, bytes, flags, process)."""
    names = {"process": np.int32, "stack": np.int32, "flags": np.int32, "result": np.int32, "bytes": np.int64}
    names |= {"destination": np.uint64, "source": np.uint64}
    columns = {name: np.array([row.get(name, 0) for row in rows], kind) for name, kind in names.items()}
    columns["function"] = np.array([load_catalogue()[row["function"]].index for row in rows], np.int32)
    columns["start"] = np.arange(len(rows), dtype=np.int64) * 10
    return columns


def allocate(stack: int, address: int, size: int = 100, **more: int) -> dict[str, Any]:
    return {"function": "cuMemAlloc_v2", "stack": stack, "destination": address, "bytes": size, **more}


def free(stack: int, address: int, **more: int) -> dict[str, Any]:
    return {"function": "cuMemFree_v2", "stack": stack, "destination": address, **more}


def upload(stack: int, destination: int, source: int) -> dict[str, Any]:
    return {
        "function": "cuMemcpyHtoD_v2",
        "stack": stack,
        "destination": destination,
        "source": source,
        "bytes": 8,
        "flags": HOST_SOURCE,
    }


def test_a_free_belongs_to_the_last_allocation_at_its_address() -> None:
    links = allocation_links(trace(allocate(1, 500), free(2, 500), allocate(3, 500), free(4, 500)))
    assert {(link.site, link.allocation, link.release) for link in links} == {(2, 1, 2), (4, 3, 4)}


def test_a_free_of_memory_that_was_not_traced_has_no_link() -> None:
    assert allocation_links(trace(free(2, 500), allocate(1, 600))) == []


def test_processes_have_addresses_of_their_own() -> None:
    links = allocation_links(trace(allocate(1, 500, process=0), free(2, 500, process=1)))
    assert links == []


def test_occurrences_are_counted() -> None:
    rows = [row for _ in range(5) for row in (allocate(1, 500), free(2, 500))]
    (link,) = allocation_links(trace(*rows))
    assert (link.role, link.memory, link.occurrences) == ("frees", "device", 5)


def test_an_upload_names_both_ends() -> None:
    pinned = {"function": "cuMemAllocHost_v2", "stack": 7, "destination": 9000, "bytes": 64}
    links = allocation_links(trace(pinned, allocate(1, 500), upload(5, 520, 9008), upload(6, 500, 70000)))
    found = {(link.site, link.role): (link.memory, link.allocation) for link in links}
    assert found == {
        (5, "host memory"): ("pinned", 7),
        (5, "destination"): ("device", 1),
        (6, "host memory"): ("pageable", None),
        (6, "destination"): ("device", 1),
    }


def test_links_of_a_long_run_are_those_of_all_its_parts() -> None:
    """Each turn allocates at the same place, uploads from there twice, and frees: more rows than one part has."""
    turn = [allocate(1, 500), upload(2, 500, 7000), upload(3, 540, 7000), free(4, 500)]
    turns = PART_ROWS // 2
    links = allocation_links(trace(*turn * turns))
    assert [(link.site, link.role, link.allocation, link.release, link.occurrences) for link in links] == [
        (4, "frees", 1, 4, turns),
        (2, "host memory", None, None, turns),
        (3, "host memory", None, None, turns),
        (2, "destination", 1, 4, turns),
        (3, "destination", 1, 4, turns),
    ]
