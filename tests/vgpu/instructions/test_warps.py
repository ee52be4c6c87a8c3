"""What the lanes of a warp do together: shuffles, votes, matches, reductions, exchanges without synchronizing."""

from __future__ import annotations

import numpy as np
import pytest

from tests.vgpu.ptx import run

pytestmark = pytest.mark.virtual_gpu


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


def test_a_vote_counts_the_lanes_that_the_voter_names() -> None:
    found = run(
        """
        mov.u32 %r1, %lanemask_lt; and.b32 %r2, %r0, 1; setp.eq.u32 %p, %r2, 1;
        vote.sync.ballot.b32 %r3, %p, %r1; st.global.u32 [%w0], %r3;
    """,
        32,
    )
    assert (found == [0xAAAAAAAA & ((1 << lane) - 1) for lane in range(32)]).all()


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


def test_every_vote_match_and_reduction() -> None:
    """All lanes, each form once; every lane sums up the answers."""
    reductions = ("add.u32", "add.s32", "min.u32", "min.s32", "max.u32", "max.s32", "and.b32", "or.b32", "xor.b32")
    code = "".join(
        f"redux.sync.{how} %r2, %r1, -1; st.global.u32 [%w0+{128 * n}], %r2;" for n, how in enumerate(reductions)
    )
    found = run(
        f"""
        mul.lo.u32 %r1, %r0, 0x9e3779b9; {code}
        setp.lt.u32 %p, %r0, 32; mov.u32 %r3, 0;
        vote.sync.all.pred %q, %p, -1; @%q add.u32 %r3, %r3, 1;
        vote.sync.any.pred %q, !%p, -1; @%q add.u32 %r3, %r3, 10;
        vote.sync.uni.pred %q, !%p, -1; @%q add.u32 %r3, %r3, 100;
        match.all.sync.b32 %r4|%q, 7, -1; @%q add.u32 %r3, %r3, 1000;
        cvt.u64.u32 %w1, %r0; shl.b64 %w1, %w1, 40;
        match.all.sync.b64 %r4|%q, %w1, -1; @%q add.u32 %r3, %r3, 10000;
        match.any.sync.b64 %r4, %w1, -1; popc.b32 %r4, %r4; mad.lo.u32 %r3, %r4, 100000, %r3;
        st.global.u32 [%w0+1152], %r3;
    """,
        32,
        words=32 * 10,
    ).reshape(10, 32)
    given = np.arange(32, dtype="u4") * np.uint32(0x9E3779B9)
    signs = given.view("i4")
    expected = [given.sum(dtype="u4"), given.sum(dtype="u4"), given.min(), signs.min(), given.max(), signs.max(),
                np.bitwise_and.reduce(given), np.bitwise_or.reduce(given), np.bitwise_xor.reduce(given)]  # fmt: skip
    for row, value in zip(found, expected, strict=False):
        assert (row == np.asarray(value).astype("i8").astype("u4")).all()
    assert (found[9] == 101101).all()
