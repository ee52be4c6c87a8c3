"""Threads of blocks and warps that work together: barriers, shuffles, votes, atomics, shared memory, calls."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from cuda.bindings import driver
from ptx import Program, Status, download, kernel, quick_gpu, upload
from virtual_gpu import checked

pytestmark = pytest.mark.virtual_gpu
INDEX = "    mov.u32 %r0, %tid.x; mad.wide.u32 %w0, %r0, 4, %a0;\n"


def run(
    body: str, threads: int, *, blocks: int = 1, before: str = "", shared: int = 0, words: int | None = None
) -> np.ndarray:
    """Run a kernel whose only argument is an array of words, all zero at first, and return them."""
    zeros = np.zeros(words or threads * blocks, np.uint32)
    with quick_gpu():
        address = upload(zeros)
        assert Program(before + kernel("k", 1, INDEX + body)).launch("k", blocks, threads, address, shared=shared) == 0
        return download(address, zeros)


def test_threads_wait_at_barriers_in_loops_and_branches() -> None:
    found = run(
        """
        .shared .u32 slots[256];
        mul.lo.u32 %r2, %r0, 4; mov.u32 %r1, slots; add.u32 %r2, %r1, %r2;
        st.shared.u32 [%r2], %r0;
        mov.u32 %r3, 128;
    again:
        bar.sync 0;
        setp.lt.u32 %p, %r0, %r3;
        @!%p bra wait;
        mad.lo.u32 %r4, %r3, 4, %r2; ld.shared.u32 %r5, [%r4]; ld.shared.u32 %r6, [%r2];
        add.u32 %r5, %r5, %r6; st.shared.u32 [%r2], %r5;
    wait:
        shr.u32 %r3, %r3, 1; setp.ne.u32 %q, %r3, 0;
        @%q bra again;
        bar.sync 0;
        ld.shared.u32 %r5, [slots]; st.global.u32 [%w0], %r5;
    """,
        256,
    )
    assert (found == 255 * 128).all()


def test_some_threads_use_another_barrier_and_some_leave_early() -> None:
    found = run(
        """
        .shared .u32 flags[2];
        setp.ge.u32 %p, %r0, 96; @%p ret;
        setp.lt.u32 %q, %r0, 64;
        @!%q bra other;
        setp.eq.u32 %p, %r0, 63; @%p st.shared.u32 [flags], 7;
        bar.sync 1, 64;
        ld.shared.u32 %r5, [flags];
        bra end;
    other:
        setp.eq.u32 %p, %r0, 95; @%p st.shared.u32 [flags+4], 9;
        bar.sync 2, 32;
        ld.shared.u32 %r5, [flags+4];
    end:
        bar.sync 0;
        st.global.u32 [%w0], %r5;
    """,
        128,
    )
    assert found.tolist() == [7] * 64 + [9] * 32 + [0] * 32


def test_barriers_reduce() -> None:
    found = run(
        """
        setp.lt.u32 %p, %r0, 40; bar.red.popc.u32 %r1, 0, %p;
        bar.red.and.pred %q, 0, %p; selp.u32 %r2, 100, 0, %q; add.u32 %r1, %r1, %r2;
        bar.red.or.pred %q, 0, %p; selp.u32 %r2, 1000, 0, %q; add.u32 %r1, %r1, %r2;
        st.global.u32 [%w0], %r1;
    """,
        64,
    )
    assert (found == 1040).all()


@pytest.mark.parametrize(
    ("mode", "amount", "segment"),
    [("up", 3, 32), ("down", 5, 32), ("bfly", 9, 32), ("idx", 17, 32), ("up", 1, 8), ("down", 2, 8), ("idx", 5, 8)],
)
def test_lanes_read_each_other(mode: str, amount: int, segment: int) -> None:
    bounds = (32 - segment) << 8 | (0 if mode == "up" else 31)
    found = run(
        f"""
        mul.lo.u32 %r1, %r0, 10;
        shfl.sync.{mode}.b32 %r2|%p, %r1, {amount}, {bounds}, 0xffffffff;
        selp.u32 %r3, 1, 0, %p; add.u32 %r2, %r2, %r3; st.global.u32 [%w0], %r2;
    """,
        32,
    )
    for lane, value in enumerate(found.tolist()):
        first = lane // segment * segment
        sources = {"up": lane - amount, "down": lane + amount, "bfly": lane ^ amount, "idx": first + amount}
        inside = first <= sources[mode] < first + segment
        assert value == 10 * (sources[mode] if inside else lane) + inside


def exchanged(values: np.ndarray, mode: str, amount: int, segment: int) -> tuple[np.ndarray, np.ndarray]:
    """Return what each thread of a block gets, and whether it is another's; lanes that do not exist give nothing."""
    lanes = np.arange(len(values)) % 32
    first = lanes // segment * segment
    sources = {"up": lanes - amount, "down": lanes + amount, "bfly": lanes ^ amount, "idx": first + amount}[mode]
    inside = (first <= sources if mode == "up" else True) & (sources < first + segment)
    threads = np.arange(len(values)) + np.where(inside, sources - lanes, 0)
    return values[np.where(threads < len(values), threads, np.arange(len(values)))], inside


@pytest.mark.parametrize("apart", [False, True])
@pytest.mark.parametrize("seed", range(6))
def test_lanes_exchange_several_times_in_a_row(seed: int, apart: bool) -> None:
    random = np.random.default_rng(seed)
    threads = int(random.choice([32, 72, 128]))
    first = "and.b32 %r4, %r0, 1; setp.eq.u32 %q, %r4, 0; @%q bra come; add.u32 %r1, %r1, 5;\n come:" if apart else ""
    body = f"mov.u32 %r2, 0; mad.lo.u32 %r1, %r0, 10, 7; mul.wide.u32 %w1, %r1, 65537; {first}\n"
    threads_now = np.arange(threads, dtype=np.uint64)
    values = (threads_now * 10 + 7).astype(np.uint32)
    wide = values.astype(np.uint64) * np.uint64(65537)
    if apart:
        values += (threads_now % 2 * 5).astype(np.uint32)
    for _ in range(int(random.integers(2, 7))):
        mode, segment = str(random.choice(["up", "down", "bfly", "idx"])), int(random.choice([8, 16, 32]))
        amount = int(random.integers(0, segment))
        bounds = (32 - segment) << 8 | (0 if mode == "up" else 31)
        body += f"""
        shfl.sync.{mode}.b32 %r2|%p, %r1, {amount}, {bounds}, -1;
        selp.u32 %r4, 1, 77, %p; mad.lo.u32 %r1, %r2, 3, %r1; add.u32 %r1, %r1, %r4;
        mad.wide.u32 %w1, %r1, %r4, %w1;"""
        got, inside = exchanged(values, mode, amount, segment)
        own = np.where(inside, 1, 77).astype(np.uint32)
        values = got * np.uint32(3) + values + own
        wide += values.astype(np.uint64) * own
    body += "shr.u64 %w2, %w1, 32; cvt.u32.u64 %r4, %w2; cvt.u32.u64 %r5, %w1; xor.b32 %r4, %r4, %r5;\n"
    found = run(body + "xor.b32 %r1, %r1, %r4; st.global.u32 [%w0], %r1;\n", threads)
    assert (found == (values ^ (wide >> np.uint64(32)).astype(np.uint32) ^ wide.astype(np.uint32))).all()


def test_lanes_vote_match_and_reduce_in_divergent_branches() -> None:
    found = run(
        """
        and.b32 %r1, %r0, 1; setp.eq.u32 %p, %r1, 0;
        shr.u32 %r2, %r0, 3; setp.lt.u32 %q, %r0, 20;
        @!%p bra odd;
        vote.sync.ballot.b32 %r3, %q, 0x55555555;
        match.any.sync.b32 %r4, %r2, 0x55555555;
        redux.sync.add.u32 %r5, %r0, 0x55555555;
        bra end;
    odd:
        vote.sync.ballot.b32 %r3, %q, 0xaaaaaaaa;
        match.any.sync.b32 %r4, %r2, 0xaaaaaaaa;
        redux.sync.max.s32 %r5, %r0, 0xaaaaaaaa;
    end:
        xor.b32 %r3, %r3, %r4; add.u32 %r3, %r3, %r5;
        st.global.u32 [%w0], %r3;
    """,
        32,
    )
    for lane, value in enumerate(found.tolist()):
        mask = 0xAAAAAAAA if lane % 2 else 0x55555555
        ballot = 0xFFFFF & mask
        alike = (0xFF << lane // 8 * 8) & mask
        reduced = 31 if lane % 2 else sum(range(0, 32, 2))
        assert value == ((ballot ^ alike) + reduced) & 0xFFFFFFFF


def test_lanes_that_ask_together_are_active_together() -> None:
    found = run(
        """
        setp.lt.u32 %p, %r0, 12; @%p bra first;
        activemask.b32 %r1; bra end;
    first:
        activemask.b32 %r1;
    end:
        st.global.u32 [%w0], %r1;
    """,
        32,
    )
    assert found.tolist() == [0xFFF] * 12 + [0xFFFFF000] * 20


def test_one_lane_is_elected_and_others_may_leave() -> None:
    found = run(
        """
        membar.gl; nanosleep.u32 20; barrier.sync 0;
        and.b32 %r4, %r0, 31; setp.lt.u32 %q, %r4, 3; mov.u32 %r1, 5; setp.ne.u32 %p, %r0, %r0;
        @!%q elect.sync %r1|%p, 0xfffffff8;
        selp.u32 %r2, 100, 0, %p; add.u32 %r1, %r1, %r2;
        ldu.global.u32 %r3, [%w0]; add.u32 %r1, %r1, %r3;
        st.global.u32 [%w0], %r1;
        setp.gt.u32 %q, %r0, 8; @%q exit;
        st.global.u32 [%w0], 7;
        """,
        64,
    )
    assert found.tolist() == [7] * 9 + [3] * 23 + [5] * 3 + [103] + [3] * 28


def test_addresses_tell_their_space() -> None:
    found = run(
        """
        .shared .u32 slot;
        mov.u32 %r1, slot; cvt.u64.u32 %w1, %r1; cvta.shared.u64 %w1, %w1;
        isspacep.shared %p, %w1; isspacep.global %q, %w1;
        selp.u32 %r2, 1, 0, %p; selp.u32 %r3, 2, 0, %q; add.u32 %r2, %r2, %r3;
        isspacep.shared %p, %w0; isspacep.global %q, %w0;
        selp.u32 %r3, 4, 0, %p; add.u32 %r2, %r2, %r3; selp.u32 %r3, 8, 0, %q; add.u32 %r2, %r2, %r3;
        st.global.u32 [%w0], %r2;
        """,
        2,
    )
    assert found.tolist() == [1 + 8] * 2


def test_atomics_lose_nothing_under_contention() -> None:
    found = run(
        """
        mov.u32 %r7, %ctaid.x;
        atom.global.add.u32 %r1, [%a0], 1;
        red.global.max.u32 [%a0+4], %r1;
        red.global.xor.b32 [%a0+8], %r0;
        atom.global.inc.u32 %r2, [%a0+12], 9;
        cvt.rn.f32.u32 %f1, %r0; red.global.add.f32 [%a0+16], %f1;
        setp.eq.u32 %p, %r7, 99; @%p atom.global.exch.b32 %r3, [%a0+20], 77;
    loop:
        ld.volatile.global.u32 %r4, [%a0+24]; add.u32 %r5, %r4, 2;
        atom.global.cas.b32 %r6, [%a0+24], %r4, %r5;
        setp.ne.u32 %q, %r4, %r6; @%q bra loop;
    """,
        64,
        blocks=100,
    )
    assert found[:4].tolist() == [6400, 6399, 0, 0]
    assert found[4:5].view("f4")[0] == 100 * 63 * 32
    assert found[5:7].tolist() == [77, 12800]


def test_atomics_in_shared_memory_compute_what_they_name() -> None:
    steps = [("add.u32", 7), ("min.s32", -5), ("max.s32", 3), ("max.u32", 9), ("min.u32", 8), ("inc.u32", 8),
             ("inc.u32", 8), ("dec.u32", 6), ("dec.u32", 6), ("dec.u32", 6), ("or.b32", 48), ("and.b32", 39),
             ("xor.b32", 5), ("exch.b32", 64)]  # fmt: skip
    after = [7, -5, 3, 9, 8, 0, 1, 0, 6, 5, 53, 37, 32, 64]
    code = "".join(
        f"atom.shared.{name} %r2, [slot], {value}; st.global.u32 [%w0+{4 * place}], %r2;\n"
        for place, (name, value) in enumerate(steps)
    )
    found = run(
        f"""
        .shared .u32 slot; st.shared.u32 [slot], 0;
        {code}
        atom.shared.cas.b32 %r2, [slot], 65, 1; st.global.u32 [%w0+56], %r2;
        atom.shared.cas.b32 %r2, [slot], 64, 0x3f800000; st.global.u32 [%w0+60], %r2;
        mov.f32 %f1, 1.5; red.shared.add.f32 [slot], %f1; ld.shared.f32 %f1, [slot];
        mul.f32 %f1, %f1, 2.0; cvt.rni.u32.f32 %r2, %f1; st.global.u32 [%w0+64], %r2;
        """,
        1,
        words=17,
    )
    assert found.view(np.int32).tolist() == [0, *after, 64, 5]


def test_atomics_in_loops_need_no_more_of_the_stack() -> None:
    found = run(
        """
        mov.u32 %r1, 100000; mov.b16 %h1, 0x3c00;
    again:
        atom.global.add.noftz.f16 %h2, [%a0], %h1;
        sub.u32 %r1, %r1, 1; setp.ne.u32 %p, %r1, 0; @%p bra again;
        """,
        1,
    )
    assert found.view(np.float16)[0] == 2048  # where adding 1 no longer changes the sum


def test_atomics_of_128_bits_are_whole() -> None:
    found = run(
        """
        .reg .b128 %x<4>; add.u64 %w1, %a0, 16;
    loop:
        atom.global.cas.b128 %x0, [%w1], %x0, %x0;
        mov.b128 {%w2, %w3}, %x0; add.cc.u64 %w4, %w2, 0xffffffffffffffff; addc.u64 %w5, %w3, 0;
        mov.b128 %x1, {%w4, %w5};
        atom.global.cas.b128 %x2, [%w1], %x0, %x1;
        mov.b128 {%w4, %w5}, %x2;
        setp.ne.u64 %p, %w4, %w2; @%p bra loop; setp.ne.u64 %p, %w5, %w3; @%p bra loop;
        mov.b128 %x3, {%w2, 77}; atom.global.exch.b128 %x3, [%a0], %x3;
    """,
        32,
        blocks=20,
        words=8,
    ).view("u8")
    total = 640 * (2**64 - 1)
    assert found[2:].tolist() == [total % 2**64, total >> 64]
    assert found[1] == 77


def test_a_thread_waits_for_one_that_comes_later() -> None:
    found = run(
        """
        mov.u32 %r1, %ctaid.x; mov.u32 %r2, %nctaid.x; sub.u32 %r2, %r2, 1; sub.u32 %r3, %r2, %r1;
        mad.wide.u32 %w2, %r1, 4, %a0; mad.wide.u32 %w3, %r3, 4, %a0;
        setp.ne.u32 %p, %r0, 31; @%p bra waits;
        st.release.gpu.global.u32 [%w3], 1;
    waits:
        ld.acquire.gpu.global.u32 %r4, [%w2]; setp.eq.u32 %q, %r4, 0; @%q bra waits;
    """,
        32,
        blocks=50,
        words=50,
    )
    assert (found == 1).all()


def test_functions_call_themselves_with_local_memory() -> None:
    before = """
.func (.param .b32 result) sum(.param .b32 count)
{
    .reg .pred %p; .reg .b32 %r<5>; .reg .b64 %w<3>;
    .local .align 4 .b8 kept[64];
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
    found = run(
        """
        { .param .b32 p0; .param .b32 q0; st.param.b32 [p0], %r0; call.uni (q0), sum, (p0); ld.param.b32 %r1, [q0]; }
        st.global.u32 [%w0], %r1;
    """,
        100,
        before=before,
    )
    assert found.tolist() == [count * (count + 1) // 2 for count in range(100)]


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


def test_dynamic_shared_memory_above_48_kibibytes() -> None:
    found = run(
        """
        mov.u32 %r1, space; mad.lo.u32 %r2, %r0, 1600, %r1;
        st.shared.v2.u32 [%r2], {%r0, 5};
        bar.sync 0;
        xor.b32 %r3, %r0, 1; mad.lo.u32 %r4, %r3, 1600, %r1; ld.shared.v2.u32 {%r5, %r6}, [%r4];
        cvta.shared.u64 %w1, 0; cvt.u64.u32 %w2, %r4; add.u64 %w1, %w1, %w2; ld.u32 %r7, [%w1];
        add.u32 %r5, %r5, %r6; add.u32 %r5, %r5, %r7; st.global.u32 [%w0], %r5;
    """,
        64,
        before=".extern .shared .align 16 .b8 space[];\n",
        shared=100 << 10,
    )
    assert found.tolist() == [2 * (thread ^ 1) + 5 for thread in range(64)]


def test_lanes_of_a_warp_exchange_values_without_synchronizing() -> None:
    """Code from before Volta relies on lanes that execute each instruction together; GPUs still do where they can."""
    found = run(
        """
        .shared .u32 slots[64];
        mul.lo.u32 %r2, %r0, 4; mov.u32 %r1, slots; add.u32 %r2, %r1, %r2;
        add.u32 %r3, %r0, 1;
        st.volatile.shared.u32 [%r2+128], %r3; st.volatile.shared.u32 [%r2], 0;
        ld.volatile.shared.u32 %r4, [%r2+124]; add.u32 %r3, %r3, %r4; st.volatile.shared.u32 [%r2+128], %r3;
        ld.volatile.shared.u32 %r4, [%r2+120]; add.u32 %r3, %r3, %r4; st.volatile.shared.u32 [%r2+128], %r3;
        ld.volatile.shared.u32 %r4, [%r2+112]; add.u32 %r3, %r3, %r4; st.volatile.shared.u32 [%r2+128], %r3;
        ld.volatile.shared.u32 %r4, [%r2+96]; add.u32 %r3, %r3, %r4; st.volatile.shared.u32 [%r2+128], %r3;
        ld.volatile.shared.u32 %r4, [%r2+64]; add.u32 %r3, %r3, %r4;
        st.global.u32 [%w0], %r3;
        """,
        32,
    )
    assert found.tolist() == np.cumsum(np.arange(1, 33)).tolist()


def test_lanes_reduce_without_synchronizing_and_the_others_go_on() -> None:
    found = run(
        """
        .shared .u32 slots[96];
        mul.lo.u32 %r2, %r0, 4; mov.u32 %r1, slots; add.u32 %r2, %r1, %r2;
        st.shared.u32 [%r2], %r0;
        bar.sync 0;
        setp.ge.u32 %p, %r0, 32; @%p bra behind;
        mov.u32 %r3, 32;
    again:
        mad.lo.u32 %r4, %r3, 4, %r2; ld.shared.u32 %r5, [%r4]; ld.shared.u32 %r6, [%r2];
        add.u32 %r5, %r5, %r6; st.shared.u32 [%r2], %r5;
        shr.u32 %r3, %r3, 1; setp.ne.u32 %q, %r3, 0;
        @%q bra again;
    behind:
        bar.sync 0;
        ld.shared.u32 %r5, [slots]; st.global.u32 [%w0], %r5;
        """,
        64,
    )
    assert (found == 32 * 63).all()


def test_lanes_that_take_no_part_in_an_exchange_do_not_overtake() -> None:
    """The first store clears what other lanes' second stores fill; even lanes skip a load and store again at once."""
    found = run(
        """
        .shared .u32 slots[64];
        .reg .u32 %n;
        mul.lo.u32 %r2, %r0, 4; mov.u32 %r1, slots; add.u32 %r2, %r1, %r2;
        st.shared.u32 [%r2], 0;
        add.u32 %r3, %r0, 1; mov.u32 %r6, 0; mov.u32 %n, 3;
        and.b32 %r7, %r0, 1; setp.eq.u32 %p, %r7, 0;
    again:
        st.shared.u32 [%r2+64], %r3;
        ld.shared.u32 %r4, [%r2+60]; add.u32 %r3, %r3, %r4; st.shared.u32 [%r2+64], %r3;
        @%p bra even;
        ld.shared.u32 %r5, [%r2+60]; add.u32 %r6, %r6, %r5;
    even:
        mul.lo.u32 %r3, %r3, 3; sub.u32 %n, %n, 1;
        setp.ne.u32 %q, %n, 0; @%q bra again;
        st.global.u32 [%w0], %r6;
        """,
        32,
    )
    values, sums = np.arange(1, 33), np.zeros(32, np.int64)
    for _ in range(3):
        values = values + np.append(0, values[:-1])
        sums[1::2] += values[:-1][::2]
        values = 3 * values
    assert found.tolist() == sums.tolist()


def test_threads_whose_accesses_lie_far_apart_catch_up_with_each_other() -> None:
    """Each thread adds up every 96th word, lanes make different numbers of turns, and then exchange what they have."""
    given = np.arange(5000, dtype=np.uint32)
    body = """
        .shared .u32 slots[96];
        mov.u32 %r0, %tid.x; mov.u32 %r1, %r0; mov.u32 %r2, 0; mov.u32 %r6, %ntid.x;
        mul.lo.u32 %r7, %r0, 52; sub.u32 %r7, 5000, %r7;
    again:
        setp.ge.s32 %p, %r1, %r7; @%p bra over;
        mad.wide.u32 %w1, %r1, 4, %a1; ld.global.u32 %r3, [%w1];
        add.u32 %r2, %r2, %r3; add.u32 %r1, %r1, %r6;
        bra again;
    over:
        mul.lo.u32 %r4, %r0, 4; mov.u32 %r5, slots; add.u32 %r4, %r5, %r4; st.volatile.shared.u32 [%r4], %r2;
        and.b32 %r3, %r0, 31; setp.eq.u32 %q, %r3, 31; @%q bra last;
        ld.volatile.shared.u32 %r3, [%r4+4]; add.u32 %r2, %r2, %r3;
    last:
        mad.wide.u32 %w0, %r0, 4, %a0; st.global.u32 [%w0], %r2;
    """
    with quick_gpu():
        sums = upload(np.zeros(96, np.uint32))
        assert Program(kernel("k", 2, body)).launch("k", 1, 96, sums, upload(given)) == 0
        found = download(sums, np.zeros(96, np.uint32))
    own = [int(given[thread : max(5000 - 52 * thread, thread) : 96].sum()) for thread in range(96)]
    assert found.tolist() == [own[lane] + (own[lane + 1] if lane % 32 < 31 else 0) for lane in range(96)]


def test_barrier_objects_complete_phases_as_the_expected_threads_arrive() -> None:
    # Each phase, every thread reads what its neighbour wrote in that phase; half wait by state, half by parity.
    found = run(
        """
        .shared .b64 object; .shared .u32 slots[128];
        setp.eq.u32 %p, %r0, 0; @%p mbarrier.init.shared::cta.b64 [object], 64;
        @%p fence.mbarrier_init.release.cluster;
        bar.sync 0;
        mov.u32 %r1, slots; mad.lo.u32 %r2, %r0, 4, %r1;
        add.u32 %r3, %r0, 1; and.b32 %r3, %r3, 63; mad.lo.u32 %r3, %r3, 4, %r1;
        mov.u32 %r4, 0; mov.u32 %r6, 0;
    phase:
        mad.lo.u32 %r5, %r4, 1000, %r0; st.shared.u32 [%r2], %r5;
        mbarrier.arrive.release.cta.shared::cta.b64 %w1, [object];
        and.b32 %r5, %r0, 1; setp.eq.u32 %q, %r5, 1; and.b32 %r5, %r4, 1;
        @%q bra by_parity;
    by_state:
        mbarrier.test_wait.shared.b64 %p, [object], %w1; @!%p bra by_state;
        bra over;
    by_parity:
        mbarrier.try_wait.parity.shared.b64 %p, [object], %r5; @!%p bra by_parity;
    over:
        ld.shared.u32 %r5, [%r3]; add.u32 %r6, %r6, %r5;
        bar.sync 0;
        add.u32 %r4, %r4, 1; setp.lt.u32 %p, %r4, 3; @%p bra phase;
        st.global.u32 [%w0], %r6;
    """,
        64,
    )
    assert found.tolist() == [3000 + 3 * ((thread + 1) % 64) for thread in range(64)]


def test_barrier_objects_count_arrivals() -> None:
    # One thread: 5 expected; 3 arrive, 1 arrives for good, 1 after its copies; the next phase expects 4.
    found = run(
        """
        .shared .b64 object; .shared .u32 copy[4];
        mov.u64 %w6, object; cvta.shared.u64 %w6, %w6;
        mov.u32 %r7, object;
        mbarrier.init.b64 [%w6], 5;
        mbarrier.arrive.shared.b64 %w1, [%r7], 3; mbarrier.pending_count.b64 %r1, %w1;
        st.global.u32 [%a0], %r1;
        mbarrier.arrive_drop.shared.b64 %w2, [%r7]; mbarrier.pending_count.b64 %r1, %w2;
        st.global.u32 [%a0+4], %r1;
        cp.async.ca.shared.global [copy], [%a0], 4; cp.async.mbarrier.arrive.shared.b64 [%r7];
        mbarrier.test_wait.shared.b64 %p, [%r7], %w1; selp.u32 %r1, 1, 0, %p; st.global.u32 [%a0+8], %r1;
        cp.async.mbarrier.arrive.noinc.shared.b64 [%r7];
        mbarrier.test_wait.shared.b64 %p, [%r7], %w1; selp.u32 %r1, 1, 0, %p; st.global.u32 [%a0+12], %r1;
        mbarrier.test_wait.parity.shared.b64 %p, [%r7], 1; selp.u32 %r1, 1, 0, %p; st.global.u32 [%a0+16], %r1;
        mbarrier.arrive.noComplete.shared.b64 %w3, [%r7], 1; mbarrier.pending_count.b64 %r1, %w3;
        st.global.u32 [%a0+20], %r1; ld.shared.u32 %r1, [copy]; st.global.u32 [%a0+24], %r1;
        mbarrier.inval.shared.b64 [%r7];
    """,
        1,
        words=8,
    )
    # Of the phase before the first one, which is odd, test_wait.parity told that it is over only before a phase ended.
    assert found.tolist() == [5, 2, 0, 1, 0, 4, 5, 0]


def test_barrier_objects_wait_for_bytes_too() -> None:
    # Arrivals alone, and bytes alone, end no phase; bytes may come before they are expected.
    state = "mbarrier.test_wait.shared.b64 %p, [object], %w1; selp.u32 %r1, 1, 0, %p; st.global.u32 [%a0+{}], %r1;"
    found = run(
        f"""
        .shared .b64 object;
        mbarrier.init.shared.b64 [object], 2;
        mbarrier.arrive.expect_tx.release.cta.shared::cta.b64 %w1, [object], 48;
        mbarrier.pending_count.b64 %r1, %w1; st.global.u32 [%a0], %r1;
        mbarrier.arrive.shared::cta.b64 _, [object]; {state.format(4)}
        mbarrier.complete_tx.relaxed.cta.shared::cta.b64 [object], 32; {state.format(8)}
        mbarrier.complete_tx.relaxed.cta.shared::cta.b64 [object], 16; {state.format(12)}
        mbarrier.complete_tx.shared.b64 [object], 1000000;
        mbarrier.arrive.shared.b64 %w1, [object], 1;
        mbarrier.arrive.expect_tx.shared.b64 _, [object], 999999; {state.format(16)}
        mbarrier.expect_tx.relaxed.cta.shared::cta.b64 [object], 1; {state.format(20)}
        mbarrier.arrive.shared.b64 %w1, [object]; mbarrier.pending_count.b64 %r1, %w1; st.global.u32 [%a0+24], %r1;
    """,
        1,
        words=7,
    )
    assert found.tolist() == [2, 0, 0, 1, 0, 1, 2]


def test_bulk_copies_arrive_with_their_bytes() -> None:
    found = run(
        """
        .shared .align 128 .b8 buffer[128]; .shared .align 8 .b64 object;
        mbarrier.init.shared.b64 [object], 1;
        st.global.v4.u32 [%a0], {1, 2, 3, 4}; st.global.v4.u32 [%a0+16], {5, 6, 7, 8};
        st.shared.u32 [buffer+64], 9;
        mov.u32 %r1, 32;
        cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [buffer+32], [%a0], %r1, [object];
        mbarrier.arrive.expect_tx.shared.b64 %w1, [object], %r1;
        mbarrier.test_wait.shared.b64 %p, [object], %w1; selp.u32 %r1, 1, 0, %p; st.global.u32 [%a0], %r1;
        fence.proxy.async.shared::cta;
        cp.async.bulk.global.shared::cta.bulk_group [%a0+32], [buffer+48], 32;
        cp.async.bulk.commit_group; cp.async.bulk.wait_group.read 0;
    """,
        1,
        words=16,
    )
    assert found[:8].tolist() == [1, 2, 3, 4, 5, 6, 7, 8]
    assert found[8:13].tolist() == [5, 6, 7, 8, 9]


@pytest.mark.virtual_gpu(fresh=True)
@pytest.mark.parametrize(
    ("copy", "error"),
    [
        ("[buffer], [%a0+8], 16", Status.CUDA_ERROR_MISALIGNED_ADDRESS),
        ("[buffer+64], [%a0], 4096", Status.CUDA_ERROR_ILLEGAL_ADDRESS),
    ],
)
def test_bulk_copies_check_every_address(copy: str, error: Any) -> None:
    body = f""".shared .align 128 .b8 buffer[128]; .shared .b64 object;
        cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes {copy}, [object];"""
    with quick_gpu():
        assert Program(kernel("k", 1, body)).launch("k", 1, 1, upload(np.zeros(4096, "u4"))) == error


def test_asynchronous_copies_fill_up_with_zeros_or_ignore_their_source() -> None:
    found = run(
        """
        .shared .align 16 .b8 buffer[64];
        st.global.v4.u32 [%a0], {1, 2, 3, 4}; mov.u64 %w5, 0;
        setp.eq.u32 %p, %r0, 0; setp.ne.u32 %q, %r0, 0;
        cp.async.cg.shared.global [buffer], [%a0], 16;
        cp.async.cg.shared.global.L2::cache_hint [buffer+16], [%a0], 16, 6, %w5;
        cp.async.cg.shared.global [buffer+32], [16], 16, %p;
        cp.async.ca.shared.global.L2::cache_hint [buffer+48], [%a0+4], 4, %q, %w5;
        cp.async.ca.shared.global.L2::cache_hint [buffer+56], [%a0+8], 8, %w5;
        cp.async.wait_all;
        ld.shared.v4.u32 {%r1, %r2, %r3, %r4}, [buffer+16]; st.global.v4.u32 [%a0+16], {%r1, %r2, %r3, %r4};
        ld.shared.v4.u32 {%r1, %r2, %r3, %r4}, [buffer+32]; st.global.v4.u32 [%a0+32], {%r1, %r2, %r3, %r4};
        ld.shared.u32 %r1, [buffer+48]; ld.shared.v2.u32 {%r2, %r3}, [buffer+56];
        st.global.u32 [%a0+48], %r1; st.global.v2.u32 [%a0+56], {%r2, %r3};
        ld.shared.v4.u32 {%r1, %r2, %r3, %r4}, [buffer]; st.global.v4.u32 [%a0], {%r1, %r2, %r3, %r4};
    """,
        1,
        words=16,
    )
    assert found[:4].tolist() == [1, 2, 3, 4]
    assert found[4:8].tolist() == [1, 2, 0, 0]
    assert found[8:12].tolist() == [0] * 4
    assert found[12:].tolist() == [2, 0, 3, 4]


def test_shared_addresses_wrap_around_in_32_bits() -> None:
    # `tile[threadIdx.x + j - 1]` with an unsigned index becomes a register below 0 and an offset.
    found = run(
        """
        .shared .u32 tile[64]; mov.u32 %r1, tile; mad.lo.u32 %r1, %r0, 4, %r1; st.shared.u32 [%r1], %r0;
        sub.u32 %r1, %r1, 16; ld.shared.u32 %r2, [%r1+16]; st.global.u32 [%w0], %r2;
    """,
        4,
    )
    assert found.tolist() == [0, 1, 2, 3]


def test_atomics_on_vectors_work_on_each_element() -> None:
    found = run(
        """
        cvt.rn.f32.u32 %f1, %r0; mov.f32 %f2, 1.0; mov.b32 %r1, 0x3c004000; mov.b16 %h1, 0x3f80; mov.b16 %h2, 0xc000;
        red.global.add.v4.f32 [%a0], {%f1, %f2, %f1, %f2};
        atom.global.add.v2.f32 {%f3, %f4}, [%a0+16], {%f2, %f1};
        atom.global.add.noftz.v2.f16x2 {%r2, %r3}, [%a0+24], {%r1, %r1};
        red.global.max.noftz.v4.bf16 [%a0+32], {%h1, %h2, %h2, %h1};
        atom.global.add.v2.f32 _, [%a0+40], {%f2, %f2};
    """,
        64,
        blocks=10,
        words=12,
    )
    sums, halves, brains = found.view("f4"), found.view("f2"), found.view("u2")
    total = 10 * sum(range(64))
    assert sums[:6].tolist() == [total, 640, total, 640, 640, total]
    assert halves[12:16].tolist() == [1280, 640] * 2
    assert brains[16:20].tolist() == [0x3F80, 0, 0, 0x3F80]
    assert sums[10:].tolist() == [640, 640]


def test_registers_of_all_types_and_local_variables_keep_their_values_while_threads_wait() -> None:
    found = run(
        """
        .local .align 8 .b8 own[1024];
        .reg .pred %even; .reg .b16 %half; .reg .b64 %wide, %place; .reg .f64 %real; .reg .b32 %turn, %one, %sum;
        and.b32 %r1, %r0, 1; setp.eq.u32 %even, %r1, 0;
        cvt.u16.u32 %half, %r0; cvt.u64.u32 %wide, %r0; shl.b64 %wide, %wide, 33; cvt.rn.f64.u32 %real, %r0;
        mov.u64 %place, own; st.local.u32 [%place], %r0;
        mov.u32 %turn, 0; mov.u32 %one, 1;
    again:
        bar.sync 0;
        add.u16 %half, %half, 1; add.u64 %wide, %wide, 1; add.f64 %real, %real, 0d3FE0000000000000;
        @%even bar.warp.sync 0x55555555;
        @!%even bar.warp.sync 0xaaaaaaaa;
        ld.local.u32 %r2, [%place]; add.u32 %r2, %r2, %one; st.local.u32 [%place], %r2;
        add.u32 %turn, %turn, %one; setp.lt.u32 %p, %turn, 10;
        @%p bra again;
        @%even add.u16 %half, %half, 100;
        cvt.u32.u16 %sum, %half; cvt.u32.u64 %r3, %wide; add.u32 %sum, %sum, %r3;
        shr.u64 %wide, %wide, 33; cvt.u32.u64 %r3, %wide; add.u32 %sum, %sum, %r3;
        cvt.rzi.u32.f64 %r3, %real; add.u32 %sum, %sum, %r3;
        ld.local.u32 %r2, [%place]; add.u32 %sum, %sum, %r2;
        st.global.u32 [%w0], %sum;
    """,
        80,
    )
    lanes = np.arange(80)
    assert (found == (lanes + 10) + 10 + lanes + (lanes + 5) + (lanes + 10) + np.where(lanes % 2, 0, 100)).all()


def test_lanes_of_a_warp_go_different_ways_to_what_they_wait_for() -> None:
    found = run(
        """
        and.b32 %r1, %r0, 3; mov.u32 %r2, 0; mov.u32 %r3, 0;
    again:
        setp.ge.u32 %p, %r2, %r1;
        @%p bra behind;
        add.u32 %r3, %r3, 10;
        add.u32 %r2, %r2, 1;
        bra again;
    behind:
        setp.eq.u32 %q, %r1, 2;
        @%q bra other;
        shfl.sync.bfly.b32 %r4|%p, %r3, 1, 31, 0xffffffff;
        bra join;
    other:
        add.u32 %r3, %r3, 1000;
        shfl.sync.bfly.b32 %r4|%p, %r3, 1, 31, 0xffffffff;
    join:
        bar.sync 0;
        mad.lo.u32 %r4, %r4, 100, %r3;
        st.global.u32 [%w0], %r4;
    """,
        64,
    )
    own = np.array([0, 10, 1020, 30])
    assert (found.reshape(-1, 4) == own[[1, 0, 3, 2]] * 100 + own).all()


def test_the_size_of_shared_variables_is_told_as_it_is() -> None:
    with quick_gpu():
        program = Program(
            kernel("k", 0, ".shared .b8 some[40]; .shared .b32 word; st.shared.u32 [word], 0;st.shared.u8 [some], 0;")
        )
        function = checked(driver.cuModuleGetFunction(program.module, b"k"))
        size = driver.CUfunction_attribute.CU_FUNC_ATTRIBUTE_SHARED_SIZE_BYTES
        assert checked(driver.cuFuncGetAttribute(size, function)) == 44


def test_a_vote_counts_the_lanes_that_the_voter_names() -> None:
    found = run(
        """
        mov.u32 %r1, %lanemask_lt; and.b32 %r2, %r0, 1; setp.eq.u32 %p, %r2, 1;
        vote.sync.ballot.b32 %r3, %p, %r1; st.global.u32 [%w0], %r3;
    """,
        32,
    )
    assert (found == [0xAAAAAAAA & ((1 << lane) - 1) for lane in range(32)]).all()


def test_a_lane_publishes_what_the_others_stored_before_a_fence() -> None:
    """Each lane stores the word of the last one's neighbour; the first lane changes its own behind the fence."""
    found = run(
        """
        .reg .u64 %mine, %other;
        vote.sync.ballot.b32 %r1, 1, 0xffffffff;
        mul.wide.u32 %mine, %r0, 8; sub.u64 %other, %w0, %mine; add.u64 %other, %other, 124;
        st.global.u32 [%other], 0x80000000;
        membar.gl;
        setp.eq.u32 %p, %r0, 0;
        @%p atom.global.and.b32 %r2, [%w0], 0x7fffffff;
        """,
        32,
    )
    assert found.tolist() == [0] + [0x80000000] * 31


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
