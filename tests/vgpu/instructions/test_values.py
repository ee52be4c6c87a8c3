"""What instructions of PTX compute, against values computed here: random ones, and those at the edges of each type."""

from __future__ import annotations

import numpy as np
import pytest

from tests.vgpu.ptx import evaluate

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
