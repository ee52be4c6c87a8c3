"""Traces that are damaged, of another kind, or made to harm: one sentence, and nothing half-imported."""

from __future__ import annotations

import gzip
import json
import random
import sqlite3
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from ffm.errors import DocumentError
from ffm.plain_text import plain
from ffm.results.documents.notes import UnlaunchedWork
from ffm.sources import json_events
from ffm.sources.nsight import read_nsight
from ffm.sources.profile import Profile
from ffm.sources.profiled_results import findings
from ffm.sources.pytorch import read_pytorch
from tests.conftest import Ffm
from tests.faults.mutations import damage_bytes
from tests.sources.nsight_reports import Report
from tests.sources.pytorch_traces import Trace, loop

MUTANTS = 120


def text_of(**changed: object) -> bytes:
    """Return a trace with one event whose fields are changed."""
    trace = loop(3)
    trace.events[1].update(changed)
    return trace.text().encode()


CASES: dict[str, tuple[bytes, str]] = {
    "empty": (b"", "has no list of events"),
    "another kind": (b"GIF89a" * 100, "has no list of events"),
    "another document": (b'{"profiles": [1, 2]}', "has no list of events"),
    "a list": (b'[{"ph": "X"}]', "has no list of events"),
    "no calls": (b'{"traceEvents": []}', "contains no calls of CUDA"),
    "cut in an event": (text_of()[:700], "is cut off"),
    "cut after an event": (text_of()[: text_of().index(b"}}, {") + 2], "is cut off"),
    "compressed and cut": (gzip.compress(text_of())[:-20], "cannot be decompressed to its end"),
    "compressed and damaged": (gzip.compress(text_of())[:-8] + b"12345678", "cannot be decompressed to its end"),
    "negative duration": (text_of(dur=-5), "ends before it starts"),
    "no duration": (text_of(dur=None), "ends before it starts"),
    "a time that no clock shows": (text_of(ts=1e300), "ends before it starts"),
    "a time in words": (text_of(ts="soon"), "events that cannot be read"),
    "a number that no trace has": (text_of(args={"correlation": 1 << 63}), "numbers that no trace has"),
    "arguments that are none": (text_of(args=[1]), "the arguments of its event"),
    "nested without end": (b'{"traceEvents": [' + b'{"args": [' * 10**6, "nested more than 500 deep"),
    "nested around the events": (b'{"a": ' * 10**6, "nested more than 500 deep"),
    "half an event": (text_of().replace(b'"dur": 5,', b'"dur": 5 5,'), "events that cannot be read"),
}


@pytest.mark.parametrize("case", CASES)
def test_what_is_no_whole_trace_is_refused_in_one_sentence(tmp_path: Path, case: str) -> None:
    content, said = CASES[case]
    path = tmp_path / "trace.json"
    path.write_bytes(content)
    with pytest.raises(DocumentError, match=said) as refused:
        read_pytorch([path])
    assert str(path) in str(refused.value) and "\n" not in str(refused.value)


def test_work_without_correlation_numbers_belongs_to_no_call(tmp_path: Path) -> None:
    trace = loop(3)
    for event in trace.events:
        event["args"].pop("correlation", None)
    profile = read_pytorch([trace.write(tmp_path / "trace.json")])
    assert not len(profile.work) and len(profile.unlaunched) == 3
    assert profile.unlaunched.notes == [UnlaunchedWork(pieces=3)]


def test_numbers_that_are_none_do_not_matter_where_none_is_needed(tmp_path: Path) -> None:
    """Writers divide by durations of 0; and a name may have been cut within a character."""
    path = tmp_path / "trace.json"
    text = loop(2).text().replace('"context": 1', '"context": 1, "blocks per SM": Infinity, "x": nan').encode()
    path.write_bytes(text.replace(b"step", b"st\xe4\xb8"))
    assert len(read_pytorch([path]).calls) == 5


def test_parts_of_any_size_give_the_same_events(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    trace = loop(4)
    trace.span("cpu_op", 'braces ]}"\\ in [{ names', 1, 2)
    path = trace.write(tmp_path / "trace.json")
    whole = read_pytorch([path])
    for size in (1, 7, 64):
        monkeypatch.setattr(json_events, "PART_BYTES", size)
        parts = read_pytorch([path])
        assert parts.names == whole.names
        assert (parts.calls.start == whole.calls.start).all() and (parts.work.call == whole.work.call).all()


def test_nothing_is_left_of_an_import_that_failed(ffm: Ffm, tmp_path: Path) -> None:
    path = tmp_path / "trace.json"
    path.write_bytes(text_of()[:700])
    answer = ffm("import", "pytorch", path, "--results", tmp_path / "results")
    assert answer.code == 1 and "is cut off" in answer.err
    assert not (tmp_path / "results").exists()


def test_hostile_names_reach_no_terminal(ffm: Ffm, tmp_path: Path) -> None:
    hostile = "\x1b]0;owned\x07\x9b31mred\r[/x] [bold]<script>alert(1)</script>"
    trace = Trace()
    trace.span("python_function", f"{hostile}.py(3): {hostile}", 0, 100)
    trace.kernel(hostile, 6, 56, trace.call("cudaLaunchKernel", 0, 5))
    trace.call("cudaDeviceSynchronize", 6, 57)
    path = trace.write(tmp_path / "trace.json")
    assert ffm("import", "pytorch", path, "--results", tmp_path / "results").code == 0
    for view in (("report", "--all"), ("path",), ("site", "1")):
        shown = ffm(*view, "--results", tmp_path / "results")
        assert shown.code == 0 and shown.out.replace("\n", "") == plain(shown.out.replace("\n", ""))
    page = tmp_path / "report.html"
    assert ffm("report", "--results", tmp_path / "results", "--html", page).code == 0
    assert "<script>alert" not in page.read_text()


def report(folder: Path) -> Path:
    made = Report()
    for begin in range(0, 1000, 100):
        made.kernel("step", begin + 6, begin + 56, made.call("cudaLaunchKernel_v7000", begin, begin + 5))
        made.wait(made.call("cudaDeviceSynchronize_v3020", begin + 6, begin + 57))
    return made.write(folder / "trace")


Reader = Callable[[Path], Profile]
KINDS: dict[str, tuple[Callable[[Path], Path], Reader]] = {
    "json": (lambda folder: loop(20).write(folder / "trace"), lambda path: read_pytorch([path])),
    "gz": (lambda folder: loop(20).write(folder / "trace.gz"), lambda path: read_pytorch([path])),
    "nsys": (report, read_nsight),
}


@pytest.mark.parametrize("kind", KINDS)
def test_a_mutant_is_read_or_refused(tmp_path: Path, kind: str) -> None:
    write, read = KINDS[kind]
    path = write(tmp_path)
    whole = path.read_bytes()
    refused = 0
    for seed in range(MUTANTS):
        path.write_bytes(whole)
        what = damage_bytes(path, random.Random(seed))
        try:
            profile = read(path)
            found = findings(profile, kind)
        except DocumentError as error:
            refused += 1
            assert str(path) in str(error), (seed, what)
        else:
            assert (found.timeline.duration >= 0).all() and (found.timeline.start >= 0).all(), (seed, what)
            assert np.isin(profile.work.call, np.arange(len(profile.calls))).all(), (seed, what)
    assert refused > MUTANTS / 4


def test_events_without_end_are_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(json_events, "LARGEST_EVENT_BYTES", 1000)
    monkeypatch.setattr(json_events, "PART_BYTES", 100)
    path = tmp_path / "trace.json"
    path.write_text(json.dumps({"traceEvents": [{"name": "x" * 5000}]}))
    with pytest.raises(DocumentError, match="has no list of events"):
        read_pytorch([path])


def damaged_report(path: Path, damage: str) -> Path:
    """Write a report of Nsight Systems that is damaged in one way."""
    report = Report()
    for turn in range(3):
        begin = 100 * turn
        number = 0 if damage == "numbers" else None
        call = report.call("cudaLaunchKernel", begin, begin + 5)
        end = begin + 2 if damage == "negative" else begin + 50
        report.kernel("step", begin + 6, end, call if number is None else number)
        report.call("cudaDeviceSynchronize", begin + 6, begin + 52)
    if damage == "kernels":
        report.copy(310, 320, report.call("cudaMemcpy", 300, 325), 4096, source=2, destination=0)
    report.write(path)
    with sqlite3.connect(path) as database:
        if damage == "numbers":
            database.execute("update CUPTI_ACTIVITY_KIND_RUNTIME set correlationId = 0")
        for table in {"tables": ("RUNTIME", "KERNEL"), "kernels": ("KERNEL",)}.get(damage, ()):
            database.execute(f"drop table CUPTI_ACTIVITY_KIND_{table}")
    database.close()
    if damage == "cut":
        path.write_bytes(path.read_bytes()[:5000])
    return path


@pytest.mark.parametrize(
    ("damage", "said"),
    [
        ("cut", "cannot be read as a report of Nsight Systems"),
        ("tables", "contains no calls of CUDA"),
        ("numbers", "has the correlation number of a recorded call"),
        ("kernels", "none of the kernels that they started"),
        ("negative", "has rows that end before they start"),
    ],
)
def test_the_command_refuses_a_damaged_report_and_leaves_nothing(
    ffm: Ffm, tmp_path: Path, damage: str, said: str
) -> None:
    path = damaged_report(tmp_path / "report.sqlite", damage)
    answer = ffm("import", "nsys", path, "--results", tmp_path / "results")
    assert answer.code == 1 and said in answer.err
    assert len(answer.err.splitlines()) == 1
    assert not (tmp_path / "results").exists()
