"""PTX shows through which parameters kernels read and write memory."""

from __future__ import annotations

import pytest

from ffm.driver.kernel_accesses import VARIABLES, kernel_accesses

FIRST, SECOND, THIRD = 0, 8, 16
"""Offsets of the parameters."""

SOURCE = """
.version 8.0
.target sm_90
.address_size 64
.global .align 4 .u32 counter;
.global .align 4 .b8 table[24] = {1, 2, 3};
.const .align 4 .b8 factors[16];
.visible .entry other(.param .u64 other_0) { ret; }
.visible .entry kernel(
    .param .u64 .ptr .global .align 4 kernel_param_0,
    .param .align 8 .b8 kernel_param_1[16],
    .param .u32 kernel_param_2
)
.maxntid 256, 1, 1
{
    .local .align 8 .b8 place[16];
    .shared .align 4 .b8 tile[64];
    .reg .pred %p<4>;
    .reg .b32 %r<9>;
    .reg .b64 %rd<20>;
    .loc 1 4 7
    ld.param.u64 %rd1, [kernel_param_0];
    .loc 1 5 7, function_name $L__info_string0, inlined_at 1 4 2
    ld.param.v2.u64 {%rd2, %rd3}, [kernel_param_1];
    ld.param.u32 %r1, [kernel_param_2];
    cvta.to.global.u64 %rd4, %rd1; // the first
    mov.u32 %r2, %tid.x;
    mad.wide.s32 %rd5, %r1, 4, %rd4;
    mul.wide.u32 %rd6, %r2, 4;
    BODY
$L__end:
    ret;
}
"""


def accesses(body: str, *given: int, among: tuple[int, ...] = (FIRST, SECOND, THIRD)) -> object:
    found = kernel_accesses(SOURCE.replace("BODY", body), "kernel")
    return None if found is None else found.among(given or among)


@pytest.mark.parametrize(
    ("body", "used", "written"),
    [
        ("ld.global.f32 %r3, [%rd5+4];", {FIRST}, set()),
        ("ld.global.nc.v2.u32 {%r3, %r4}, [%rd2];", {SECOND}, set()),
        ("@%p1 st.global.u32 [%rd3+-8], %r2;", {THIRD}, {THIRD}),
        ("add.s64 %rd7, %rd3, %rd6;\n st.u32 [%rd7], %r2;", {THIRD}, {THIRD}),
        ("atom.global.add.u32 %r3, [%rd2], 1;", {SECOND}, {SECOND}),
        ("red.relaxed.gpu.global.add.s32 [%rd2], %r1;", {SECOND}, {SECOND}),
        ("cp.async.ca.shared.global [%r3], [%rd2], 4;\n cp.async.commit_group;", {SECOND}, set()),
        ("prefetch.global.L2 [%rd2];", set(), set()),
        # An index that was loaded.
        (
            "ld.global.u32 %r3, [%rd2];\n mul.wide.s32 %rd7, %r3, 4;\n add.s64 %rd8, %rd7, %rd3;"
            "st.global.u32 [%rd8], %r3;",
            {SECOND, THIRD},
            {THIRD},
        ),
        # One of two, in a loop, or by a condition.
        ("selp.b64 %rd7, %rd2, %rd3, %p1;\n st.global.u32 [%rd7], %r1;", {SECOND, THIRD}, {SECOND, THIRD}),
        ("$L__again: add.s64 %rd2, %rd2, 4;\n ld.global.u32 %r3, [%rd2];\n @%p1 bra $L__again;", {SECOND}, set()),
        # The end of one, by its length.
        ("sub.s64 %rd7, %rd3, %rd2;\n add.s64 %rd8, %rd1, %rd7;\n st.global.u32 [%rd8], %r1;",
         {FIRST, SECOND, THIRD}, {FIRST, SECOND, THIRD}),
        # Its own memory.
        ("mov.u32 %r3, tile;\n st.shared.u32 [%r3], %r1;\n ld.shared.u32 %r4, [%r3+4];", set(), set()),
        ("mov.u64 %rd7, place;\n cvta.local.u64 %rd8, %rd7;\n st.u32 [%rd8], %r1;", set(), set()),
        ("mov.u64 %rd7, place;\n st.local.u64 [%rd7], %rd2;\n ld.local.u64 %rd8, [%rd7];\n st.global.u32 [%rd8], %r1;",
         {SECOND}, {SECOND}),
        ("ld.const.u32 %r3, [factors+4];", set(), set()),
        ("mov.u64 %rd7, table;\n ld.global.u32 %r3, [%rd7];", {VARIABLES}, set()),
    ],
)  # fmt: skip
def test_what_kernels_use(body: str, used: set[int], written: set[int]) -> None:
    assert accesses(body) == (used, written)


@pytest.mark.parametrize(
    "body",
    [
        # Addresses from memory: of a list, a table, or chosen.
        "ld.global.u64 %rd7, [%rd2];\n ld.global.u32 %r3, [%rd7];",
        "ld.global.u64 %rd7, [%rd2];\n add.s64 %rd8, %rd7, %rd6;\n st.global.u32 [%rd8], %r1;",
        "$L__next: ld.global.u64 %rd2, [%rd2];\n @%p1 bra $L__next;\n",
        "ld.global.u64 %rd7, [%rd2];\n selp.b64 %rd8, %rd7, %rd2, %p1;\n ld.global.u32 %r3, [%rd8];",
        # One to which the distance of two others is added.
        "ld.global.u64 %rd7, [%rd1];\n sub.s64 %rd8, %rd3, %rd2;\n add.s64 %rd9, %rd7, %rd8;\n"
        "st.global.u32 [%rd9], %r1;",
        "mul.lo.s64 %rd7, %rd2, 2;\n st.global.u32 [%rd7], %r1;",
        "ld.param.u32 %r3, [kernel_param_1];\n ld.param.u32 %r4, [kernel_param_1+4];\n mov.b64 %rd7, {%r3, %r4};\n"
        "st.global.u32 [%rd7], %r1;",
        "st.global.u32 [4096], %r1;",
        "mov.b64 %rd7, kernel_param_1;\n ld.param.u64 %rd8, [%rd7];",
        "call.uni helper, (param0);",
        "mov.u64 %rd7, helper;",
        "st.global.u32 [counter], %r1;",
        "mov.u64 %rd7, counter;\n st.global.u64 [%rd2], %rd7;",
        "tex.2d.v4.f32.f32 {%r3, %r4, %r5, %r6}, [%rd2, {%r1, %r2}];",
        "cp.async.bulk.global.shared::cta.bulk_group [%rd2], [%r3], 16;",
    ],
)  # fmt: skip
def test_what_is_not_followed(body: str) -> None:
    assert accesses(body) is None


def test_what_is_no_address_in_a_launch() -> None:
    """A parameter that is a number in one launch, or an address of memory that is not followed, is no base."""
    body = "ld.global.u64 %rd7, [%rd1];\n add.s64 %rd8, %rd7, %rd2;\n st.global.u32 [%rd8], %r1;"
    assert accesses(body, FIRST, THIRD) is None
    assert accesses("st.global.u32 [%rd2], %r1;", FIRST) is None
    assert accesses("add.s64 %rd7, %rd1, %rd2;\n st.global.u32 [%rd7], %r1;", FIRST) == ({FIRST}, {FIRST})


def test_a_kernel_that_is_not_there() -> None:
    assert kernel_accesses(SOURCE.replace("BODY", ""), "kern") is None
    assert kernel_accesses(SOURCE.replace("BODY", ""), "kernel_param_0") is None
