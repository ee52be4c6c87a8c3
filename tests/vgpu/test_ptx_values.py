"""What instructions of PTX compute, against values computed here: random ones, and those at the edges of each type."""

from __future__ import annotations

import ctypes

import numpy as np
import pytest
from ptx import evaluate

pytestmark = pytest.mark.virtual_gpu
EDGES = {
    "i4": [0, 1, -1, 2, -2, 31, 32, 33, 2**31 - 1, -(2**31), 0x12345678],
    "u4": [0, 1, 2, 31, 32, 33, 255, 2**31, 2**32 - 1, 0x80000001, 0xF0F0F0F0],
    "i8": [0, 1, -1, 63, 64, 2**63 - 1, -(2**63), 2**32, -(2**32) - 1],
    "u8": [0, 1, 63, 64, 2**63, 2**64 - 1, 0x123456789ABCDEF0],
    "i2": [0, 1, -1, 2**15 - 1, -(2**15)],
    "f4": [
        0.0,
        -0.0,
        1.0,
        -1.0,
        0.5,
        1.5,
        2.5,
        -2.5,
        1e-45,
        -1e-40,
        1.1754944e-38,
        3.4028235e38,
        np.inf,
        -np.inf,
        np.nan,
        2147483648.0,
        -2147483648.0,
        4294967296.0,
        1e10,
        0.1,
        3.3333333,
        65504.0,
        65520.0,
        6e-8,
        3e-8,
    ],
    "f8": [
        0.0,
        -0.0,
        1.0,
        0.5,
        1.5,
        2.5,
        -2.5,
        1e-310,
        1e308,
        np.inf,
        -np.inf,
        np.nan,
        1 / 3,
        2.0**63,
        2.0**53 + 1,
        65519.99,
    ],
    "f2": [0.0, -0.0, 1.0, -1.5, 65504.0, 6e-8, 6.1e-5, 0.1, np.inf, np.nan, 1 / 3, 1000.5],
}


def values(kind: str, count: int, seed: int) -> np.ndarray:
    """Numbers of the type: the edges, and random ones."""
    random = np.random.default_rng(seed)
    dtype = np.dtype(kind)
    if dtype.kind == "f":
        rest = (random.standard_normal(count) * 10.0 ** random.integers(-4, 4, count)).astype(dtype)
    else:
        rest = random.integers(np.iinfo(dtype).min, np.iinfo(dtype).max, count, dtype, endpoint=True)
    made = np.concatenate([np.array(EDGES[kind]).astype(dtype), rest])
    return np.asarray(random.permutation(made)[:count])


def check(kind: str, table: dict[str, tuple[str, np.ndarray]], *inputs: np.ndarray) -> None:
    """Compare each piece of code's results with those beside it; numbers that are none are alike."""
    results = evaluate([(code, result) for code, (result, _) in table.items()], *inputs)
    for found, (code, (_, expected)) in zip(results, table.items(), strict=True):
        np.testing.assert_array_equal(found, expected.astype(found.dtype), err_msg=f"{kind}: {code}")


@pytest.mark.parametrize(("kind", "word"), [("i4", "s32"), ("u4", "u32"), ("i8", "s64"), ("u8", "u64"), ("i2", "s16")])
def test_integer_arithmetic(kind: str, word: str) -> None:
    x, y, z = (values(kind, 64, seed) for seed in (1, 2, 3))
    bits = x.dtype.itemsize * 8
    divisor = np.where(y == 0, 3, y).astype(x.dtype)
    exact = [int(a) * int(b) for a, b in zip(x, y, strict=True)]
    mask = 2**bits - 1
    unsigned = np.dtype(f"u{x.dtype.itemsize}")
    high = np.array([(product >> bits) & mask for product in exact], unsigned)
    quotient = [abs(int(a)) // abs(int(b)) * (1 if (a < 0) == (b < 0) else -1) for a, b in zip(x, divisor, strict=True)]
    rest = [int(a) - int(b) * q for a, b, q in zip(x, divisor, quotient, strict=True)]
    wrapped = {
        "quotient": np.array([q & mask for q in quotient], unsigned).view(kind),
        "rest": np.array([r & mask for r in rest], unsigned).view(kind),
    }
    check(
        kind,
        {
            f"add.{word} %o, %x, %y;": (kind, x + y),
            f"sub.{word} %o, %x, %y;": (kind, x - y),
            f"mul.lo.{word} %o, %x, %y;": (kind, x * y),
            f"mul.hi.{word} %o, %x, %y;": (kind, high.view(kind)),
            f"mad.lo.{word} %o, %x, %y, %z;": (kind, x * y + z),
            f"min.{word} %o, %x, %y;": (kind, np.minimum(x, y)),
            f"max.{word} %o, %x, %y;": (kind, np.maximum(x, y)),
            f"sad.{word} %o, %x, %y, %z;": (kind, np.maximum(x, y) - np.minimum(x, y) + z),
        },
        x,
        y,
        z,
    )
    check(
        kind,
        {f"div.{word} %o, %x, %y;": (kind, wrapped["quotient"]), f"rem.{word} %o, %x, %y;": (kind, wrapped["rest"])},
        x,
        divisor,
    )


def test_logic_and_shifts_whose_amounts_are_large() -> None:
    x, y, z = (values("u4", 96, seed) for seed in (4, 5, 6))
    amount = np.where(z % 3 == 0, z, z % 40).astype("u4")
    small = np.minimum(amount, 31)
    left = np.where(amount > 31, 0, x << small)
    right = np.where(amount > 31, 0, x >> small)
    arithmetic = x.view("i4") >> small
    pair = y.astype("u8") << 32 | x
    check(
        "u4",
        {
            "and.b32 %o, %x, %y;": ("u4", x & y),
            "xor.b32 %o, %x, %y;": ("u4", x ^ y),
            "not.b32 %o, %x;": ("u4", ~x),
            "cnot.b32 %o, %x;": ("u4", x == 0),
            "lop3.b32 %o, %x, %y, %z, 0x96;": ("u4", x ^ y ^ amount),
            "lop3.b32 %o, %x, %y, %z, 0xe8;": ("u4", x & y | x & amount | y & amount),
            "shl.b32 %o, %x, %z;": ("u4", left),
            "shr.u32 %o, %x, %z;": ("u4", right),
            "shr.s32 %o, %x, %z;": ("i4", arithmetic),
            "shf.r.wrap.b32 %o, %x, %y, %z;": ("u4", pair >> (amount & 31)),
            "shf.l.wrap.b32 %o, %x, %y, %z;": ("u4", (pair << (amount & 31).astype("u8")) >> 32),
            "shf.r.clamp.b32 %o, %x, %y, %z;": ("u4", pair >> np.minimum(amount, 32)),
        },
        x,
        y,
        amount,
    )


def test_fields_of_bits() -> None:
    x = values("u4", 96, 7)
    first, length = (np.random.default_rng(seed).integers(0, 40, 96, "u4") for seed in (8, 9))
    field, signed, inserted, permuted = [], [], [], []
    for value, at, size in zip(x.tolist(), first.tolist(), length.tolist(), strict=True):
        part = value >> at & ((1 << size) - 1)
        field.append(part)
        top = value >> min(at + size - 1, 31) & 1
        extended = (value - (value >> 31 << 32)) >> at & ((1 << size) - 1)  # behind bit 31 the sign goes on
        signed.append((extended | (-1 << size if top and size < 32 else 0)) & 0xFFFFFFFF if size else 0)
        ones = ((1 << size) - 1) << at & 0xFFFFFFFF
        inserted.append((0x5A5A5A5A << at & ones) | (value & ~ones & 0xFFFFFFFF))
        source = value.to_bytes(4, "little") + (0x89ABCDEF).to_bytes(4, "little")
        codes = [(at * 0x1111 + size) >> 4 * place & 15 for place in range(4)]
        picked = [source[code & 7] if code < 8 else 255 * (source[code & 7] >> 7) for code in codes]
        permuted.append(int.from_bytes(bytes(picked), "little"))
    reversed_bits = [int(f"{value:032b}"[::-1], 2) for value in x.tolist()]
    check(
        "fields",
        {
            "bfe.u32 %o, %x, %y, %z;": ("u4", np.array(field)),
            "bfe.s32 %o, %x, %y, %z;": ("u4", np.array(signed)),
            "bfi.b32 %o, 0x5a5a5a5a, %x, %y, %z;": ("u4", np.array(inserted)),
            "mad.lo.u32 %r1, %y, 0x1111, %z; prmt.b32 %o, %x, 0x89abcdef, %r1;": ("u4", np.array(permuted)),
            "popc.b32 %o, %x;": ("u4", np.array([value.bit_count() for value in x.tolist()])),
            "clz.b32 %o, %x;": ("u4", np.array([32 - value.bit_length() for value in x.tolist()])),
            "brev.b32 %o, %x;": ("u4", np.array(reversed_bits)),
            "bfind.u32 %o, %x;": ("i4", np.array([value.bit_length() - 1 for value in x.tolist()])),
        },
        x,
        first,
        length,
    )


def test_carries_go_from_word_to_word() -> None:
    x, y = values("u8", 64, 10), values("u8", 64, 11)
    unpack = "mov.b64 {%r1, %r2}, %x; mov.b64 {%r3, %r4}, %y; "
    check(
        "carry",
        {
            unpack + "add.cc.u32 %r5, %r1, %r3; addc.u32 %r6, %r2, %r4; mov.b64 %o, {%r5, %r6};": ("u8", x + y),
            unpack + "sub.cc.u32 %r5, %r1, %r3; subc.u32 %r6, %r2, %r4; mov.b64 %o, {%r5, %r6};": ("u8", x - y),
            unpack + "mul.lo.u32 %r5, %r1, %r3; mul.hi.u32 %r6, %r1, %r3; mad.lo.cc.u32 %r5, %r1, 1, %r5;"
            "madc.hi.u32 %r6, %r1, 0, %r6; mov.b64 %o, {%r5, %r6};": (
                "u8",
                (x & 0xFFFFFFFF) * (y & 0xFFFFFFFF) + (x & 0xFFFFFFFF),
            ),
        },
        x,
        y,
    )


@pytest.mark.parametrize(("kind", "word"), [("f4", "f32"), ("f8", "f64")])
@pytest.mark.filterwarnings("ignore::RuntimeWarning")
def test_floating_point_arithmetic_is_rounded_as_ieee_says(kind: str, word: str) -> None:
    x, y, z = (values(kind, 96, seed) for seed in (12, 13, 14))
    check(
        kind,
        {
            f"add.rn.{word} %o, %x, %y;": (kind, x + y),
            f"sub.{word} %o, %x, %y;": (kind, x - y),
            f"mul.rn.{word} %o, %x, %y;": (kind, x * y),
            f"div.rn.{word} %o, %x, %y;": (kind, x / y),
            f"sqrt.rn.{word} %o, %x;": (kind, np.sqrt(x)),
            f"rcp.rn.{word} %o, %x;": (kind, (np.dtype(kind).type(1) / x)),
            f"min.{word} %o, %x, %y;": (kind, np.fmin(x, y)),
            f"max.{word} %o, %x, %y;": (kind, np.fmax(x, y)),
            f"max.NaN.{word} %o, %x, %y;" if kind == "f4" else f"max.{word} %o, %x, %y;": (
                kind,
                np.maximum(x, y) if kind == "f4" else np.fmax(x, y),
            ),
            f"neg.{word} %o, %x;": (kind, -x),
            f"copysign.{word} %o, %x, %y;": (kind, np.copysign(y, x)),
            f"setp.lt.{word} %p, %x, %y; selp.{word} %o, %x, %y, %p;": (kind, np.where(x < y, x, y)),
            f"setp.leu.{word} %p, %x, %y; selp.u32 %o, 1, 0, %p;": ("u4", ~(x > y)),
            f"setp.nan.{word} %p, %x, %y; selp.u32 %o, 1, 0, %p;": ("u4", np.isnan(x) | np.isnan(y)),
        },
        x,
        y,
        z,
    )


def test_directed_rounding_encloses_the_exact_value() -> None:
    x, y = (values("f4", 96, seed) for seed in (15, 16))
    finite = np.isfinite(x) & np.isfinite(y)
    x, y = x[finite], y[finite]
    down, up, chopped = evaluate([(f"add.{way}.f32 %o, %x, %y;", "f4") for way in ("rm", "rp", "rz")], x, y)
    exact = x.astype("f8") + y.astype("f8")
    assert (down.astype("f8") <= exact).all()
    assert (up.astype("f8") >= exact).all()
    np.testing.assert_array_equal(chopped, np.where(exact < 0, up, down))
    inexact = exact != exact.astype("f4")
    assert (np.nextafter(down, np.float32(np.inf))[inexact] == up[inexact]).all()


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
@pytest.mark.parametrize(("way", "mode"), [("rm", 0x400), ("rp", 0x800), ("rz", 0xC00)])
def test_directed_rounding_is_that_of_the_c_library(way: str, mode: int) -> None:
    x, y, z = (values("f4", 400, seed) for seed in (20, 21, 22))
    x, y, z = (
        np.tile(x, 2),
        np.tile(y, 2),
        np.concatenate([z, -(x * y)]),
    )  # the second half cancels: only errors are left
    pieces = [f"fma.{way}.f32 %o, %x, %y, %z;", f"mul.{way}.f32 %o, %x, %y;", f"sub.{way}.f32 %o, %x, %z;"]
    found = evaluate([(piece, "f4") for piece in pieces], x, y, z)
    library = ctypes.CDLL("libm.so.6")
    library.fmaf.argtypes, library.fmaf.restype = [ctypes.c_float] * 3, ctypes.c_float
    one, none = np.ones_like(x), np.full_like(x, -0.0)
    for result, terms in zip(found, [(x, y, z), (x, y, none), (x, one, -z)], strict=True):
        lists = [term.tolist() for term in terms]
        library.fesetround(mode)
        expected = [library.fmaf(*given) for given in zip(*lists, strict=True)]
        library.fesetround(0)
        np.testing.assert_array_equal(result, np.array(expected, "f4"))


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
def test_half_precision_is_rounded_once() -> None:
    x, y, z = (values("f2", 96, seed) for seed in (17, 18, 19))
    exact = x.astype("f8") * y.astype("f8") + z.astype("f8")  # 80 bits would be needed; these values need fewer
    check(
        "f2",
        {
            "add.rn.f16 %o, %x, %y;": ("f2", x + y),
            "mul.rn.f16 %o, %x, %y;": ("f2", x * y),
            "fma.rn.f16 %o, %x, %y, %z;": ("f2", exact.astype("f2")),
            "max.f16 %o, %x, %y;": ("f2", np.fmax(x, y)),
            "mov.b32 %r1, {%x, %y}; mov.b32 %r2, {%z, %z}; add.rn.f16x2 %r1, %r1, %r2; mov.b32 {%h1, %o}, %r1;": (
                "f2",
                y + z,
            ),
            "cvt.f32.f16 %f1, %x; cvt.rn.bf16.f32 %o, %f1;": ("u2", brain_of(x.astype("f4"))),
        },
        x,
        y,
        z,
    )


def brain_of(single: np.ndarray) -> np.ndarray:
    """The nearest bf16, as bits; 0x7fff for what is no number."""
    bits = single.view("u4").astype("u8")
    rounded = (bits + 0x7FFF + (bits >> 16 & 1)) >> 16
    return np.where(np.isnan(single), 0x7FFF, rounded).astype("u2")


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
def test_conversions_saturate_and_round() -> None:
    x = values("f4", 96, 20)
    wide = x.astype("f8")

    def whole(rounded: np.ndarray, kind: str) -> np.ndarray:
        limits = np.iinfo(kind)
        cut = [0 if np.isnan(v) else int(min(max(v, float(limits.min)), float(limits.max))) for v in rounded]
        return np.array([min(max(v, limits.min), limits.max) for v in cut], kind)

    check(
        "from f32",
        {
            "cvt.rzi.s32.f32 %o, %x;": ("i4", whole(np.trunc(wide), "i4")),
            "cvt.rni.s32.f32 %o, %x;": ("i4", whole(np.rint(wide), "i4")),
            "cvt.rmi.s32.f32 %o, %x;": ("i4", whole(np.floor(wide), "i4")),
            "cvt.rpi.u32.f32 %o, %x;": ("u4", whole(np.ceil(wide), "u4")),
            "cvt.rzi.u8.f32 %o, %x;": ("u1", whole(np.trunc(wide), "u1")),
            "cvt.rn.f16.f32 %o, %x;": ("f2", x.astype("f2")),
            "cvt.f64.f32 %o, %x;": ("f8", wide),
            "cvt.rni.f32.f32 %o, %x;": ("f4", np.rint(x)),
            "cvt.sat.f32.f32 %o, %x;": ("f4", np.where(np.isnan(x), 0, np.clip(x, 0, 1))),
        },
        x,
    )
    y = values("i8", 64, 21)
    check(
        "from s64",
        {
            "cvt.rn.f32.s64 %o, %x;": ("f4", y.astype("f4")),
            "cvt.rn.f64.s64 %o, %x;": ("f8", y.astype("f8")),
            "cvt.sat.s8.s64 %o, %x;": ("i1", np.clip(y, -128, 127)),
            "cvt.sat.u16.s64 %o, %x;": ("u2", np.clip(y, 0, 65535)),
            "cvt.u32.u64 %o, %x;": ("u4", y.view("u8") & 0xFFFFFFFF),
        },
        y,
    )
    z = values("f8", 64, 22)
    check(
        "from f64",
        {
            "cvt.rn.f32.f64 %o, %x;": ("f4", z.astype("f4")),
            "cvt.rn.f16.f64 %o, %x;": ("f2", z.astype("f2")),
        },
        z,
    )


def eighths(mantissa: int, smallest: int, largest_code: int) -> np.ndarray:
    """All numbers of a format of 8 bits that are finite and not negative, in the order of their codes."""
    exponent, fraction = np.divmod(np.arange(largest_code + 1), 1 << mantissa)
    whole = fraction + np.where(exponent > 0, 1 << mantissa, 0)
    return whole * 2.0 ** (np.maximum(exponent, 1) - 1 + smallest - mantissa)


@pytest.mark.parametrize(("kind", "table"), [("e4m3", eighths(3, -6, 0x7E)), ("e5m2", eighths(2, -14, 0x7B))])
def test_numbers_of_8_bits(kind: str, table: np.ndarray) -> None:
    rng = np.random.default_rng(1)
    between = (table[1:] + table[:-1]) / 2
    x = np.concatenate([table, -between, rng.normal(0, 50, 200), [1e9, -1e9, np.inf, -np.inf]]).astype("f4")
    y = np.roll(x, 7)
    codes = np.arange(256, dtype="u2") | np.uint16(0x3800)
    narrow, halves = evaluate([(f"cvt.rn.satfinite.{kind}x2.f32 %o, %x, %y;", "u2")], x, y)[0], codes
    wide = evaluate([(f"cvt.rn.f16x2.{kind}x2 %o, %x;", "u4")], halves)[0]

    def code(values: np.ndarray) -> np.ndarray:
        size = np.abs(values.astype("f8"))
        below = np.clip(np.searchsorted(table, size, "right") - 1, 0, len(table) - 2)
        middle = (table[below] + table[below + 1]) / 2
        upwards = (size > middle) | ((size == middle) & (below % 2 == 1))
        return (below + upwards).astype("u2") | np.where(np.signbit(values), 0x80, 0).astype("u2")

    assert (narrow == (code(x) << 8 | code(y))).all()
    low = (wide & 0xFFFF).astype("u2").view("f2")
    assert (low[: len(table)] == table.astype("f2")).all()
    assert (low[128 : 128 + len(table)] == -table.astype("f2")).all()
    assert np.isnan(low[[0x7F, 0xFF]]).all()
    assert ((wide >> 16) == wide[0x38] & 0xFFFF).all()


@pytest.mark.parametrize("count", [2, 4])
def test_integers_of_a_register_side_by_side(count: int) -> None:
    rng = np.random.default_rng(2)
    x, y, z = (rng.integers(0, 2**32, 300, np.uint32) for _ in range(3))
    signed, plain = (np.dtype(f"{sign}{4 // count}") for sign in "iu")
    a, b, ua, ub = (values.view(kind).astype("i8") for kind in (signed, plain) for values in (x, y))
    high = np.iinfo(signed).max
    cases = {
        f"vadd{count}.s32.s32.s32.sat": (np.clip(a + b, -high - 1, high), signed),
        f"vsub{count}.u32.u32.u32": (ua - ub, plain),
        f"vsub{count}.u32.u32.u32.sat": (np.maximum(ua - ub, 0), plain),
        f"vavrg{count}.u32.u32.u32": ((ua + ub + 1) >> 1, plain),
        f"vabsdiff{count}.u32.u32.u32": (abs(ua - ub), plain),
        f"vabsdiff{count}.u32.s32.s32": (abs(a - b), plain),
        f"vmin{count}.s32.s32.s32": (np.minimum(a, b), signed),
        f"vmax{count}.u32.u32.u32": (np.maximum(ua, ub), plain),
        f"vset{count}.u32.u32.lt": ((ua < ub).astype("i8"), plain),
    }
    found = evaluate([(f"{name} %o, %x, %y, %z;", "u4") for name in cases], x, y, z)
    for (name, (expected, kind)), words in zip(cases.items(), found, strict=True):
        assert (words == expected.astype(kind).view("u4")).all(), name
    (summed,) = evaluate([(f"vabsdiff{count}.u32.u32.u32.add %o, %x, %y, %z;", "u4")], x, y, z)
    assert (summed == z + abs(ua - ub).reshape(-1, count).sum(axis=1).astype("u4")).all()
