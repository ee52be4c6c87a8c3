"""Atomic operations of many threads."""

from __future__ import annotations

import numpy as np
import pytest

from tests.vgpu.ptx import run

pytestmark = pytest.mark.virtual_gpu


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


def test_atomics_in_every_order_and_scope() -> None:
    """Each adds one: together they count to their number times that of the threads."""
    orders = ["", ".relaxed", ".acquire", ".release", ".acq_rel"]
    scopes = [".cta", ".cluster", ".gpu", ".sys"]
    adds = [f"atom{order}{scope}.global.add.u32 %r1, [%a0], 1;" for order in orders for scope in scopes]
    adds += [f"red{order}{scope}.global.add.u32 [%a0], 1;" for order in (".relaxed", ".release") for scope in scopes]
    adds += ["atom.add.u32 %r1, [%a0], 1;", "red.add.u32 [%a0], 1;", "mov.u64 %w5, 0;",
             "atom.global.add.L2::cache_hint.u32 %r1, [%a0], 1, %w5;",
             "red.global.add.L2::cache_hint.u32 [%a0], 1, %w5;"]  # fmt: skip
    shared = ["atom.shared::cta.add.u32 %r1, [slot], 1;", "atom.shared::cluster.add.u32 %r1, [slot], 1;",
              "red.shared::cta.add.u32 [slot], 1;", "red.shared::cluster.add.u32 [slot], 1;"]  # fmt: skip
    found = run(
        f""".shared .u32 slot; st.shared.u32 [slot], 0; bar.sync 0; {"".join(adds + shared)} bar.sync 0;
        ld.shared.u32 %r2, [slot]; setp.eq.u32 %p, %r0, 0; @%p st.global.u32 [%a0+4], %r2;""",
        64,
        words=2,
    )
    assert found.tolist() == [64 * (len(adds) - 1), 64 * len(shared)]
