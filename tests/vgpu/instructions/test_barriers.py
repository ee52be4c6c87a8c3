"""Barriers of blocks, and threads that wait for each other in other ways."""

from __future__ import annotations

import numpy as np
import pytest

from tests.vgpu.ptx import Program, download, kernel, quick_gpu, run, upload

pytestmark = pytest.mark.virtual_gpu


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


def test_barriers_by_all_their_names() -> None:
    """Half of the threads only arrive; the others read what these stored. Then all reduce, in every way."""
    found = run(
        """
        .shared .u32 slots[64]; .reg .u32 %place;
        mov.u32 %r1, slots; mad.lo.u32 %place, %r0, 4, %r1; setp.lt.u32 %p, %r0, 32; mov.u32 %r7, 0;
        @!%p bra reads;
        st.shared.u32 [%place], %r0;
        bar.cta.arrive 1, 64; barrier.arrive 2, 64; barrier.cta.arrive.aligned 3, 64;
        bra over;
    reads:
        bar.cta.sync 1, 64; barrier.sync 2, 64; barrier.cta.sync.aligned 3, 64;
        ld.shared.u32 %r7, [%place+-128];
    over:
        bar.warp.sync 0xffffffff; barrier.cluster.arrive.release.aligned; barrier.cluster.wait.acquire.aligned;
        bar.cta.red.popc.u32 %r2, 0, %p; add.u32 %r7, %r7, %r2;
        barrier.red.popc.aligned.u32 %r2, 0, !%p; add.u32 %r7, %r7, %r2;
        barrier.cta.red.or.pred %q, 0, %p; @%q add.u32 %r7, %r7, 1000;
        barrier.cta.red.and.aligned.pred %q, 0, %p; @%q add.u32 %r7, %r7, 10000;
        st.global.u32 [%w0], %r7;
    """,
        64,
    )
    assert found.tolist() == [1064] * 32 + [1064 + lane for lane in range(32)]


def test_what_computes_nothing_lets_the_thread_go_on() -> None:
    found = run(
        """
        griddepcontrol.launch_dependents; griddepcontrol.wait; nanosleep.u32 20; pmevent 3; pmevent.mask 3;
        setmaxnreg.inc.sync.aligned.u32 64; setmaxnreg.dec.sync.aligned.u32 40; brkpt;
        st.global.u32 [%w0], 7;
    """,
        64,
    )
    assert (found == 7).all()
