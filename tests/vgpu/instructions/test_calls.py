"""Calls of functions, and local memory."""

from __future__ import annotations

import numpy as np
import pytest
from cuda.bindings import driver

from tests.vgpu.ptx import Program, Status, download, kernel, quick_gpu, run, upload
from tests.vgpu.virtual_gpu import checked

pytestmark = pytest.mark.virtual_gpu


SUM = """
.func (.param .b32 result) sum(.param .b32 count)
{
    .reg .pred %p; .reg .b32 %r<5>; .reg .b64 %w<3>;
    .local .align 4 .b8 kept[SIZE];
    ld.param.u32 %r1, [count];
    mov.u32 %r3, 0;
    setp.eq.u32 %p, %r1, 0; @%p bra done;
    mov.u64 %w1, kept; and.b32 %r4, %r1, 15; mad.wide.u32 %w2, %r4, 4, %w1; st.local.u32 [%w2], %r1;
    sub.u32 %r2, %r1, 1;
    { .param .b32 p0; .param .b32 q0; st.param.b32 [p0], %r2; call.uni (q0), sum, (p0); ld.param.b32 %r3, [q0]; }
    ld.local.u32 %r2, [%w2]; add.u32 %r3, %r3, %r2;
done:
    st.param.b32 [result], %r3; ret;
}
"""
"""A function that adds up its argument and all smaller numbers by calling itself, with SIZE bytes of local memory."""

CALL = """
    { .param .b32 p0; .param .b32 q0; st.param.b32 [p0], %r0; call.uni (q0), sum, (p0); ld.param.b32 %r1, [q0]; }
    st.global.u32 [%w0], %r1;
"""


def test_functions_call_themselves_with_local_memory() -> None:
    found = run(CALL, 100, before=SUM.replace("SIZE", "64"))
    assert found.tolist() == [count * (count + 1) // 2 for count in range(100)]


def test_the_stack_is_as_large_as_the_program_asks_for() -> None:
    """1,500 calls of 256 bytes, within the 512 KiB of local memory that a thread may have."""
    with quick_gpu():
        checked(driver.cuCtxSetLimit(driver.CUlimit.CU_LIMIT_STACK_SIZE, 512 << 10))
        program = Program(SUM.replace("SIZE", "256") + kernel("k", 1, "mov.u64 %w0, %a0; mov.u32 %r0, 1500;" + CALL))
        result = upload(np.zeros(1, np.uint32))
        assert program.launch("k", 1, 2, result) == Status.CUDA_SUCCESS
        assert download(result, np.zeros(1, np.uint32)).tolist() == [1500 * 1501 // 2]


def test_arrays_at_known_places_and_at_chosen_ones_hold_the_same_bytes() -> None:
    found = run(
        """
        .local .align 16 .b8 table[32];
        .local .align 4 .b8 other[8];
        .reg .b64 %near, %far, %moved, %either;
        mov.u64 %near, table; cvta.local.u64 %far, %near; add.u64 %moved, %far, 8;
        st.local.v4.u32 [%near], {%r0, %r0, %r0, %r0};
        st.local.v2.u32 [%near+16], {%r0, %r0}; st.local.u64 [%near+24], 0;
        mov.u64 %either, other; st.local.u32 [%either], 7; st.local.u32 [%either+4], 70;
        and.b32 %r1, %r0, 1; setp.eq.u32 %p, %r1, 1;
        @%p mov.u64 %either, table;
        st.u32 [%moved], 1000; st.u8 [%moved+4], 255; // the words 2 and 3 of the table
        ld.local.u32 %r2, [%either+4];                // 70, or the table's word 1
        and.b32 %r3, %r0, 3; mad.wide.u32 %w1, %r3, 4, %near; ld.local.u32 %r4, [%w1];
        mad.lo.u32 %r2, %r2, 10000, %r4; st.global.u32 [%w0], %r2;
    """,
        100,
    )
    words = [[thread, thread, 1000, thread | 255] for thread in range(100)]
    chosen = [thread if thread % 2 else 70 for thread in range(100)]
    assert found.tolist() == [chosen[thread] * 10000 + words[thread][thread % 4] for thread in range(100)]


def test_local_memory_outlasts_barriers() -> None:
    found = run(
        """
        .local .align 8 .b8 kept[64];
        .reg .b64 %near, %far;
        .reg .b32 %sum;
        mov.u64 %near, kept; cvta.local.u64 %far, %near;
        mov.u32 %r1, 0;
    fill:
        mad.wide.u32 %w1, %r1, 4, %near; mad.lo.u32 %r2, %r0, 16, %r1; st.local.u32 [%w1], %r2;
        bar.sync 0;
        add.u32 %r1, %r1, 1; setp.lt.u32 %p, %r1, 16; @%p bra fill;
        mov.u32 %sum, 0;
    read:
        sub.u32 %r1, %r1, 1; mad.wide.u32 %w1, %r1, 4, %far; ld.u32 %r2, [%w1]; add.u32 %sum, %sum, %r2;
        bar.warp.sync 0xffffffff;
        setp.ne.u32 %p, %r1, 0; @%p bra read;
        st.global.u32 [%w0], %sum;
    """,
        96,
    )
    assert (found == [sum(range(16 * thread, 16 * thread + 16)) for thread in range(96)]).all()


def test_threads_wait_in_functions_that_they_call() -> None:
    function = """
    .func (.param .b32 sum) halves(.param .b32 given)
    {
        .reg .b32 %r<4>;
        .reg .pred %p;
        ld.param.u32 %r0, [given];
        mov.u32 %r1, 16;
    again:
        shfl.sync.bfly.b32 %r2, %r0, %r1, 0x1f, 0xffffffff;
        add.u32 %r0, %r0, %r2;
        bar.sync 0;
        shr.u32 %r1, %r1, 1; setp.ne.u32 %p, %r1, 0; @%p bra again;
        st.param.b32 [sum], %r0;
        ret;
    }
    """
    found = run(
        """
        { .param .b32 given; .param .b32 sum; st.param.b32 [given], %r0;
        call (sum), halves, (given); ld.param.b32 %r1, [sum]; }
        st.global.u32 [%w0], %r1;
    """,
        64,
        before=function,
    )
    assert found.tolist() == [sum(range(32))] * 32 + [sum(range(32, 64))] * 32


def test_a_caller_may_expect_a_result_that_the_function_does_not_give() -> None:
    """As C's linkage allows, and Numba's declarations of functions that return nothing do."""
    before = """
.func store(.param .b64 target)
{
    .reg .b64 %w<2>;
    ld.param.u64 %w1, [target]; st.global.u32 [%w1], 42; ret;
}
"""
    found = run(
        "{ .param .b64 p0; .param .b64 q0; st.param.b64 [p0], %w0; call.uni (q0), store, (p0); }", 8, before=before
    )
    assert found.tolist() == [42] * 8


def test_the_stack_grows_and_shrinks() -> None:
    """Each thread fills arrays whose size it chooses, in a loop that gives them back, across barriers."""
    found = run(
        """
        .reg .b32 %turn, %sum; .reg .b64 %top, %far;
        mov.u32 %turn, 0; mov.u32 %sum, 0;
    turn:
        stacksave.u64 %top;
        add.u32 %r1, %r0, 1; mul.wide.u32 %w1, %r1, 4;
        alloca.u64 %w2, %w1; alloca.u64 %w3, 4000, 32;
        st.local.u32 [%w3+3996], 1000000;
        mov.u32 %r2, 0;
    fill:
        mad.wide.u32 %w4, %r2, 4, %w2; add.u32 %r3, %r2, %turn; st.local.u32 [%w4], %r3;
        add.u32 %r2, %r2, 1; setp.lt.u32 %p, %r2, %r1; @%p bra fill;
        bar.sync 0;
        cvta.local.u64 %far, %w2; mad.wide.u32 %w4, %r0, 4, %far; ld.u32 %r3, [%w4]; add.u32 %sum, %sum, %r3;
        and.b64 %w5, %w3, 31; cvt.u32.u64 %r3, %w5; mad.lo.u32 %sum, %r3, 5000, %sum;
        stackrestore.u64 %top;
        add.u32 %turn, %turn, 1; setp.lt.u32 %p, %turn, 200; @%p bra turn;
        st.global.u32 [%w0], %sum;
    """,
        64,
    )
    assert found.tolist() == [sum(lane + turn for turn in range(200)) for lane in range(64)]


def test_more_of_the_stack_than_there_is_ends_the_kernel() -> None:
    with quick_gpu():
        program = Program(kernel("k", 1, "alloca.u64 %w1, %a0; st.local.u8 [%w1], 1;"))
        assert program.launch("k", 1, 1, 1 << 40) == Status.CUDA_ERROR_HARDWARE_STACK_ERROR
