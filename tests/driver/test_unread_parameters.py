"""Which bytes of their parameters kernels never read."""

from __future__ import annotations

import pytest

from ffm.driver.unread_parameters import UnreadBytes, unread_parameters

SOURCE = """
.version 8.0
.target sm_90
.address_size 64
.visible .entry kernel( // its name
    .param .u64 .ptr .global .align 4 kernel_param_0,
    .param .u8 kernel_param_1,
    .param .align 8 .b8 kernel_param_2[24]
)
{
    .reg .b64 %rd<9>;
    ld.param.u64 %rd1, [kernel_param_0];
    ld.param.u8 %rs1, [kernel_param_1];
    BODY
    ret;
}
.visible .entry other(.param .u32 other_param_0) { ret; }
"""
OTHER = (0, 4)
"""`other` reads nothing of its parameter."""


def unread(body: str, *more: str) -> list[tuple[int, int]]:
    """Return the stretches of `kernel`, whose structure begins at byte 16."""
    found = unread_parameters([SOURCE.replace("BODY", body), *more])
    assert UnreadBytes("other", *OTHER) in found
    return [(one.begin, one.end) for one in found if one.kernel == "kernel"]


@pytest.mark.parametrize(
    ("body", "stretches"),
    [
        ("", [(16, 40)]),
        ("ld.param.u64 %rd2, [kernel_param_2];", [(24, 40)]),
        ("ld.param.u32 %r1, [kernel_param_2+8];", [(16, 24), (28, 40)]),
        ("ld.param.v2.u64 {%rd2, %rd3}, [kernel_param_2+8];", [(16, 24)]),
        ("ld.param.v4.u8 {%rs2, %rs3, %rs4, %rs5}, [kernel_param_2+20];", [(16, 36)]),
        ("// ld.param.u64 %rd2, [kernel_param_2];", [(16, 40)]),
        ("{ ld.param.f64 %fd1, [kernel_param_2+16]; }", [(16, 32)]),
        ("@%p1 ld.param.u64 %rd2, [kernel_param_2];", [(24, 40)]),
    ],
)
def test_what_is_never_loaded_is_unread(body: str, stretches: list[tuple[int, int]]) -> None:
    assert unread(body) == stretches


@pytest.mark.parametrize(
    "body",
    [
        "mov.b64 %rd2, kernel_param_2;",
        "cvta.param.u64 %rd2, kernel_param_2;",
        "ld.volatile.param.u64 %rd2, [kernel_param_2];",
        "ld.param.u64 %rd2, [kernel_param_2+-8];",
        "ld.param.u64 %rd2, [kernel_param_2];\n mov.b64 %rd3, kernel_param_2;",
    ],
)
def test_a_parameter_that_is_used_in_another_way_is_read(body: str) -> None:
    assert unread(body) == []


def test_what_any_kernel_of_a_name_reads_is_read() -> None:
    again = SOURCE.replace("BODY", "ld.param.u64 %rd2, [kernel_param_2+16];")
    assert unread("ld.param.u64 %rd2, [kernel_param_2];", again) == [(24, 32)]
    longer = SOURCE.replace("BODY", "").replace("[24]", "[32]")
    assert unread("", longer) == [(16, 40)]


def test_a_kernel_with_a_parameter_of_unknown_size_reads_all() -> None:
    unknown = SOURCE.replace("BODY", "").replace(".param .u8 kernel", ".param .u6 kernel")
    assert [one.kernel for one in unread_parameters([unknown])] == ["other"]


@pytest.mark.parametrize("wanted", [{"other"}, {"other", "its"}, {"kernel", "other"}, {"none"}])
def test_only_kernels_with_wanted_names_are_read(wanted: set[str]) -> None:
    found = {one.kernel for one in unread_parameters([SOURCE.replace("BODY", "")], wanted)}
    assert found == wanted & {"kernel", "other"}
