"""`mbarrier`, and asynchronous copies."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from tests.vgpu.ptx import Program, Status, kernel, quick_gpu, run, upload

pytestmark = pytest.mark.virtual_gpu


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
