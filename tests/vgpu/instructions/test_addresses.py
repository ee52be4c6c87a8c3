"""Addresses of the state spaces, and shared memory."""

from __future__ import annotations

import pytest
from cuda.bindings import driver

from tests.vgpu.ptx import Program, kernel, quick_gpu, run
from tests.vgpu.virtual_gpu import checked

pytestmark = pytest.mark.virtual_gpu


def test_addresses_tell_their_space() -> None:
    found = run(
        """
        .shared .u32 slot;
        mov.u32 %r1, slot; cvt.u64.u32 %w1, %r1; cvta.shared.u64 %w1, %w1;
        isspacep.shared %p, %w1; isspacep.global %q, %w1;
        selp.u32 %r2, 1, 0, %p; selp.u32 %r3, 2, 0, %q; add.u32 %r2, %r2, %r3;
        isspacep.shared %p, %w0; isspacep.global %q, %w0;
        selp.u32 %r3, 4, 0, %p; add.u32 %r2, %r2, %r3; selp.u32 %r3, 8, 0, %q; add.u32 %r2, %r2, %r3;
        .local .u32 own; mov.u64 %w1, own; cvta.local.u64 %w1, %w1;
        isspacep.local %p, %w1; @%p add.u32 %r2, %r2, 16; isspacep.global %q, %w1; @%q add.u32 %r2, %r2, 32;
        isspacep.param %p, %w1; @%p add.u32 %r2, %r2, 64;
        mov.u64 %w1, k_0; cvta.param.u64 %w1, %w1; isspacep.param %p, %w1; @%p add.u32 %r2, %r2, 128;
        isspacep.global %q, %w1; @%q add.u32 %r2, %r2, 256; isspacep.local %q, %w1; @%q add.u32 %r2, %r2, 512;
        isspacep.shared::cta %p, %w0; @%p add.u32 %r2, %r2, 1024; isspacep.param %q, %w0; @%q add.u32 %r2, %r2, 2048;
        st.global.u32 [%w0], %r2;
        """,
        2,
    )
    assert found.tolist() == [1 + 8 + 16 + 128] * 2


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


def test_more_dynamic_shared_memory_than_allowed_is_refused() -> None:
    """48 KiB with the kernel's own variables, unless it asks for more; then that much (CUDA C++ Programming Guide)."""
    allowed = driver.CUfunction_attribute.CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES
    with quick_gpu():
        text = kernel("k", 0, ".shared .align 16 .b8 own[1024]; st.shared.u32 [own], 1;")
        program = Program(".extern .shared .align 16 .b8 space[];\n" + text)
        function = checked(driver.cuModuleGetFunction(program.module, b"k"))

        def launch(shared: int) -> driver.CUresult:
            return driver.cuLaunchKernel(function, 1, 1, 1, 1, 1, 1, shared, 0, 0, 0)[0]

        assert checked(driver.cuFuncGetAttribute(allowed, function)) == 47 << 10
        assert [launch(shared).value for shared in (47 << 10, (47 << 10) + 1)] == [0, 1]
        assert driver.cuFuncSetAttribute(function, allowed, (226 << 10) + 1)[0].value == 1
        checked(driver.cuFuncSetAttribute(function, allowed, 100 << 10))
        assert [launch(shared).value for shared in (100 << 10, (100 << 10) + 1)] == [0, 1]


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


def test_the_size_of_shared_variables_is_told_as_it_is() -> None:
    with quick_gpu():
        program = Program(
            kernel("k", 0, ".shared .b8 some[40]; .shared .b32 word; st.shared.u32 [word], 0;st.shared.u8 [some], 0;")
        )
        function = checked(driver.cuModuleGetFunction(program.module, b"k"))
        size = driver.CUfunction_attribute.CU_FUNC_ATTRIBUTE_SHARED_SIZE_BYTES
        assert checked(driver.cuFuncGetAttribute(size, function)) == 44


def test_generic_addresses_and_back() -> None:
    """Of each space: a value comes through the generic address, and `cvta.to` yields the one that it was made of."""
    found = run(
        """
        .shared .align 8 .b8 there[16]; .local .align 8 .b8 kept[16];
        .const .align 8 .b8 fixed[8] = {9, 0, 0, 0, 0, 0, 0, 0};
        mov.u32 %r7, 0;
        mov.u64 %w1, there; st.shared.u32 [%w1+4], 5; cvta.shared.u64 %w2, %w1; ld.u32 %r1, [%w2+4];
        cvta.to.shared.u64 %w3, %w2; setp.eq.u64 %p, %w1, %w3; @%p add.u32 %r7, %r7, %r1;
        mov.u64 %w1, kept; st.local.u32 [%w1], 70; cvta.local.u64 %w2, %w1; ld.u32 %r1, [%w2];
        cvta.to.local.u64 %w3, %w2; setp.eq.u64 %p, %w1, %w3; @%p add.u32 %r7, %r7, %r1;
        mov.u64 %w1, fixed; cvta.const.u64 %w2, %w1; ld.u32 %r1, [%w2];
        cvta.to.const.u64 %w3, %w2; setp.eq.u64 %p, %w1, %w3; @%p mad.lo.u32 %r7, %r1, 100, %r7;
        cvta.global.u64 %w2, %w0; cvta.to.global.u64 %w3, %w2; setp.eq.u64 %p, %w0, %w3; @%p add.u32 %r7, %r7, 2000;
        mov.u64 %w1, k_0; cvta.param.u64 %w2, %w1; ld.u64 %w4, [%w2]; cvta.to.param.u64 %w3, %w2;
        setp.eq.u64 %p, %w4, %a0; setp.eq.and.u64 %p, %w1, %w3, %p; @%p add.u32 %r7, %r7, 30000;
        cvta.shared::cta.u64 %w2, 8; cvta.to.shared::cluster.u64 %w3, %w2; cvt.u32.u64 %r1, %w3;
        mad.lo.u32 %r7, %r1, 100000, %r7;
        st.global.u32 [%w0], %r7;
    """,
        2,
    )
    assert found.tolist() == [832975] * 2


def test_advice_to_caches_changes_no_memory() -> None:
    found = run(
        """
        st.global.u32 [%w0], %r0; prefetch.global.L1 [%w0]; prefetch.L2 [%w0]; prefetch.global.L2::evict_last [%w0];
        prefetchu.L1 [%w0]; applypriority.global.L2::evict_normal [%a0], 128; discard.global.L2 [%a0+256], 128;
        createpolicy.fractional.L2::evict_last.b64 %w1, 0.5; createpolicy.cvt.L2.b64 %w2, %w1;
        createpolicy.range.global.L2::evict_last.L2::evict_unchanged.b64 %w1, [%a0], 128, 256;
        ld.global.L2::cache_hint.u32 %r1, [%w0], %w1; add.u32 %r1, %r1, 1; st.global.u32 [%w0], %r1;
    """,
        32,
        words=128,
    )
    assert found[:32].tolist() == list(range(1, 33))
