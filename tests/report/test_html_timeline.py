"""The timeline of a run that the HTML report draws."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import orjson
import pytest

from ffm.model.device import Action
from ffm.model.timeline import Kind
from ffm.report.formats.html import html
from ffm.report.formats.timeline import KINDS, MOST_PIECES, MOST_SPANS, timeline_data
from ffm.results.documents.stacks import Frame, Module, Stack
from ffm.results.stored import Results, open_results
from ffm.stages.analysis.findings import Findings, SiteDescription
from ffm.stages.analysis.results import write_results
from tests.model.simulator import Call, traced
from tests.report.sample_analysis import sample_analysis
from tests.report.test_html_report import checked

MS = 1_000_000


def results_of(calls: list[Call], folder: Path, file: str = "/src/als.cu") -> Results:
    """Store a run whose every second call is from the same line."""
    timeline, work, gpu = traced(calls)
    object.__setattr__(timeline, "site", np.arange(len(calls), dtype=np.int32) % 2)
    object.__setattr__(work, "measured", np.where(gpu > 0, gpu, -1))
    frames = [
        [
            Frame(module=1, offset=1, function=call),
            Frame(module=0, offset=line, function="step", file=file, line=line),
        ]
        for line, call in ((20, "cudaLaunchKernel"), (24, "cudaDeviceSynchronize"))
    ]
    found = Findings(
        application="als",
        command=["./als"],
        wall_s=float((timeline.duration + timeline.gap).sum()) / 1e9,
        timeline=timeline,
        sites=[SiteDescription(0, "cuLaunchKernel"), SiteDescription(1, "cuCtxSynchronize")],
        stacks=[Stack(key=f"{number:032x}", frames=stack) for number, stack in enumerate(frames)],
        modules=[Module(path="/bin/als", build_id="aa"), Module(path="/lib/libcudart.so", build_id="bb")],
        work=work,
    )
    write_results(found, folder)
    return open_results(folder)


def once(gpu: int = 4 * MS) -> list[Call]:
    return [
        Call(Action.ENQUEUE, Kind.LAUNCH, own=MS, gpu=gpu, gap=MS, stream=1),
        Call(Action.WAIT_CONTEXT, Kind.SYNCHRONIZATION, gap=2 * MS),
    ]


def test_calls_waits_work_and_the_path_are_where_they_were(tmp_path: Path) -> None:
    """A launch of 1 ms, work of 4 ms beside 1 ms of the CPU, a wait for the other 3, and 2 ms of the CPU."""
    data = timeline_data(results_of(once(), tmp_path))
    assert data is not None
    content = orjson.loads(str(data.json))
    assert content["lanes"] == ["thread 1", "stream 2"]
    tick = content["tick"] * 1e3

    def shown(columns: dict[str, list[int]]) -> list[tuple[int, str, float, float]]:
        rows = zip(columns["lane"], columns["kind"], columns["begin"], columns["length"], strict=True)
        return sorted(
            (lane, KINDS[kind], round(begin * tick, 6), round(length * tick, 6)) for lane, kind, begin, length in rows
        )

    assert shown(content["spans"]) == [(0, "call", 0, 1), (0, "wait", 2, 3), (1, "kernel", 1, 4)]
    assert shown(content["path"]) == [(0, "call", 0, 1), (0, "cpu", 5, 2), (1, "kernel", 1, 4)]
    assert data.inferred


def test_no_times_of_a_gpu_that_did_nothing_are_inferred(tmp_path: Path) -> None:
    data = timeline_data(results_of([Call(Action.NONE, Kind.OTHER, own=MS, gap=MS)], tmp_path))
    assert data is not None
    assert not data.inferred


@pytest.mark.parametrize("times", [3, 5_000])
def test_a_run_of_any_length_takes_about_as_much_room(tmp_path: Path, times: int) -> None:
    data = timeline_data(results_of(once(5_000) * times, tmp_path))
    assert data is not None
    content = orjson.loads(str(data.json))
    assert len(content["spans"]["begin"]) <= MOST_SPANS
    path = content["path"]
    assert len(path["begin"]) <= MOST_PIECES
    over = np.add(path["begin"], path["length"])
    beyond = over[:-1] - path["begin"][1:]
    assert ((beyond == 0) | (beyond == 1)).all(), "joined pieces follow each other"
    assert sum(content["spans"]["count"]) == 2 * times, "the GPU is done before each wait, which leaves no span"


def test_the_key_explains_what_is_drawn_and_nothing_else(tmp_path: Path) -> None:
    data = timeline_data(results_of(once(), tmp_path))
    assert data is not None
    content = orjson.loads(str(data.json))
    drawn = {KINDS[kind] for columns in (content["spans"], content["path"]) for kind in columns["kind"]}
    assert "transfer" not in drawn
    assert {kind for kind, _ in data.key} == drawn | {"path"}


def test_names_of_the_program_cannot_end_the_script(tmp_path: Path) -> None:
    nasty = "/src/</script><script>alert(1)</script>.cu"
    results = results_of(once(), tmp_path, nasty)
    page = html(results.document, timeline=timeline_data(results))
    assert "<script>alert" not in page
    assert checked(page).tags >= {"script", "canvas"}
    assert page.count("<script") == 2


def test_totals_have_no_picture_in_time() -> None:
    assert "<canvas" not in html(sample_analysis())
