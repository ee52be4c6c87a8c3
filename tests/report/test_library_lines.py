"""Calls in headers of libraries: which line of the program leads there."""

from __future__ import annotations

from pathlib import Path

import msgspec

from ffm.report.formats.sarif import sarif
from ffm.report.overview import overview
from ffm.report.remedies.view import remedies_view
from ffm.report.terminal.remedies import render_remedies
from ffm.results.documents.analysis import Analysis
from ffm.results.documents.stacks import Frame, Stack
from ffm.results.places import own_line
from tests.report.printed import text_of
from tests.report.sample_analysis import sample_analysis

HEADER = "/usr/local/cuda/include/cccl/thrust/system/cuda/detail/util.h"
PROGRAM = "/home/user/sort.cu"


def through_a_library() -> Analysis:
    """The sample, with a first site in a header of Thrust, which the program's line 99 reaches."""
    analysis = sample_analysis()
    header = Frame(module=0, offset=1, function="thrust::copy_to_device", file=HEADER, line=161)
    program = Frame(module=0, offset=2, function="sort", file=PROGRAM, line=99)
    sites = [msgspec.structs.replace(analysis.sites[0], file=HEADER, line=161, stack=0), *analysis.sites[1:]]
    return msgspec.structs.replace(
        analysis,
        sites=sites,
        stacks=[Stack(key="through", frames=[header, program]), *analysis.stacks[1:]],
        allocations=[],
    )


def test_a_site_in_a_library_s_header_names_the_line_of_the_program() -> None:
    analysis = through_a_library()
    found = own_line(analysis, 0)
    assert found is not None
    assert (found.place, found.file, found.line, found.caller) == ("sort.cu:99", PROGRAM, 99, "sort")
    names = [row.name for row in overview(analysis, show_all=True).points.rows]
    assert f"{analysis.sites[0].call} util.h:161 from sort.cu:99" in names


def test_a_site_in_the_program_is_its_own_line() -> None:
    analysis = through_a_library()
    own = msgspec.structs.replace(analysis.sites[0], file=PROGRAM, line=99)
    assert own_line(msgspec.structs.replace(analysis, sites=[own, *analysis.sites[1:]]), 0) is None


def test_remedies_say_which_line_of_the_program_to_change() -> None:
    view = remedies_view(through_a_library(), show_all=True)
    remedy = next(one for one in view.remedies if one.where.site == 1)
    assert [(place.role, place.where.place) for place in remedy.places][:2] == [
        ("line of the program", "sort.cu:99"),
        ("call", "util.h:161"),
    ]
    assert "line of the program: sort.cu:99 in sort" in text_of(render_remedies(view))
    results = sarif(view, Path("/home/user"))["runs"][0]["results"]
    located = [one["locations"][0]["physicalLocation"] for one in results]
    assert {"artifactLocation": {"uri": "sort.cu"}, "region": {"startLine": 99}} in located
    assert not any("util.h" in one["artifactLocation"]["uri"] for one in located)
