"""`ffm report --by line`: one row for each source line of the program."""

from __future__ import annotations

import dataclasses
from pathlib import Path

import msgspec
import numpy as np
import pytest

from ffm.report.lines import lines
from ffm.report.numbers import Scale
from ffm.report.overview import overview
from ffm.report.terminal.lines import render_lines
from ffm.results.documents.stacks import Frame, Stack
from ffm.results.stored import Results, open_results
from ffm.stages.analysis.findings import Findings
from ffm.stages.analysis.results import write_results
from tests.report.printed import text_of
from tests.results.loop_findings import ITERATIONS
from tests.results.replayed_findings import measured, several_ranks

INCLUDE = "/usr/local/cuda/targets/x86_64-linux/include"


def through(call: str, header: str, header_line: int, file: str, line: int) -> Stack:
    """The stack of a call that a header makes for a line of the program."""
    frames = [
        Frame(module=1, offset=16, function=call),
        Frame(
            module=0, offset=header_line, function="inner", file=f"{INCLUDE}/{header}", line=header_line, inlined=True
        ),
        Frame(module=0, offset=header_line, function="step", file=file, line=line),
        Frame(module=0, offset=1, function="main", file="/home/user/main.cpp", line=7),
    ]
    return Stack(key=f"{header_line:032x}", frames=frames)


def with_headers(findings: Findings) -> Findings:
    """The loop of `loop_findings`, where headers make the calls: both frees for one line."""
    stacks = list(findings.stacks)
    stacks[0] = through("cudaMemcpy", "cuda_runtime.h", 1038, "/home/user/io/solve.cu", 10)
    stacks[2] = through("cudaFree", "thrust/detail/vector_base.h", 57, "/home/user/core/solve.cu", 12)
    stacks[3] = through("cudaFree", "thrust/detail/temporary_array.h", 99, "/home/user/core/solve.cu", 12)
    return dataclasses.replace(findings, stacks=stacks)


@pytest.fixture
def results(tmp_path: Path) -> Results:
    write_results(with_headers(measured()), tmp_path)
    return open_results(tmp_path)


def test_calls_count_for_the_line_of_the_program_that_leads_to_them(results: Results) -> None:
    view = lines(results, "replay")
    found = {line.place: (line.function, line.calls, line.sites, line.occurrences) for line in view.lines}
    assert found == {
        "core/solve.cu:12": ("step", ["cudaFree"], [3, 4], 2 * ITERATIONS),
        "io/solve.cu:10": ("step", ["cudaMemcpy"], [1], ITERATIONS),
    }
    assert [line.conditional for line in view.lines if line.line == 12] == [True]
    seconds = [line.saving.seconds("replay") for line in view.lines]
    assert seconds == sorted(seconds, reverse=True)


@pytest.mark.parametrize("ranks", [1, 3])
def test_a_line_saves_what_its_calls_save_together(tmp_path: Path, ranks: int) -> None:
    write_results(with_headers(measured() if ranks == 1 else several_ranks(ranks)), tmp_path)
    results = open_results(tmp_path)
    document = results.document
    saving = {line.line: line.saving for line in lines(results, "replay").lines}
    folds = {fold.name: Scale(document.wall_s).saving(fold.benefit) for fold in document.folds}
    for line, fold in ((12, "cudaFree"), (10, "cudaMemcpy")):
        assert dataclasses.astuple(saving[line])[:8] == pytest.approx(dataclasses.astuple(folds[fold])[:8])
    assert document.everything is not None and document.everything.replay_s is not None
    assert all(one.seconds("replay") <= document.everything.replay_s + 1e-12 for one in saving.values())


def test_without_debug_information_each_call_is_its_own_row(tmp_path: Path) -> None:
    findings = measured()
    bare = [Stack(key=stack.key, frames=[without_line(frame) for frame in stack.frames]) for stack in findings.stacks]
    write_results(dataclasses.replace(findings, stacks=bare), tmp_path)
    results = open_results(tmp_path)
    view = lines(results, "replay", show_all=True)
    points = overview(results.document, "replay", show_all=True).points
    assert sorted(line.sites for line in view.lines) == sorted([row.number] for row in points.rows)
    assert {line.place for line in view.lines} == {"solve+0xa", "solve+0xc", "solve+0xd"}


def without_line(frame: Frame) -> Frame:
    return msgspec.structs.replace(frame, file="", line=0)


def test_the_screen_names_lines_calls_and_what_is_hidden(results: Results) -> None:
    shown = text_of(render_lines(lines(results, "replay", results="--results here")))
    assert "core/solve.cu:12*" in shown and "io/solve.cu:10 cudaM" in shown
    assert "All problems together" in shown
    assert "ffm site 3 --results here" in shown or "ffm site 4 --results here" in shown
    assert max(map(len, shown.splitlines())) <= 80
    assert "cuda_runtime.h" not in shown and "thrust" not in shown
    large = msgspec.structs.replace(results.document, wall_s=1e6)
    results.document = large
    hidden = lines(results, "replay")
    assert (hidden.lines, hidden.hidden) == ([], 2)
    assert "2 lines hidden (see --all): " in text_of(render_lines(hidden))
    assert len(lines(results, "replay", show_all=True).lines) == 2


def test_nothing_to_save_is_said(tmp_path: Path) -> None:
    findings = measured()
    none = dataclasses.replace(findings.timeline, problem=np.zeros_like(findings.timeline.problem))
    write_results(dataclasses.replace(findings, timeline=none), tmp_path)
    assert "No unnecessary or misplaced" in text_of(render_lines(lines(open_results(tmp_path), "replay")))
