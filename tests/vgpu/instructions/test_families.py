"""Instructions of PTX beside the arithmetic ones, a family a table, against values computed here.

What each computes is that of NVIDIA's "PTX ISA", section "Instructions".
"""

from __future__ import annotations

import numpy as np
import pytest

from tests.vgpu.instructions.test_values import check, values
from tests.vgpu.ptx import evaluate

pytestmark = pytest.mark.virtual_gpu


def nth_set_bit(mask: int, base: int, offset: int) -> int:
    """The place of a set bit, counted from a place upwards or downwards; all ones if there is none."""
    if offset == 0:
        return base if mask >> base & 1 else 0xFFFFFFFF
    places = range(base, 32) if offset > 0 else range(base, -1, -1)
    found = [place for place in places if mask >> place & 1]
    return found[abs(offset) - 1] if len(found) >= abs(offset) else 0xFFFFFFFF


def test_masks_and_places_of_bits() -> None:
    x = values("u4", 96, 34)
    random = np.random.default_rng(35)
    first, width, turn = (random.integers(low, 40, 96).astype("i4") for low in (0, 0, -20))
    base = first & 31
    masks = [
        ((1 << min(b, 32)) - 1) << min(a, 32) & 0xFFFFFFFF for a, b in zip(first.tolist(), width.tolist(), strict=True)
    ]
    cut = np.minimum(width, 32)
    filled = [
        0 if b == 0 else ((v & ((1 << b) - 1)) ^ (1 << b - 1)) - (1 << b - 1)
        for v, b in zip(x.tolist(), cut.tolist(), strict=True)
    ]
    places = [nth_set_bit(*given) for given in zip(x.tolist(), base.tolist(), turn.tolist(), strict=True)]
    check(
        "bits",
        {
            "bmsk.clamp.b32 %o, %y, %z;": ("u4", np.array(masks)),
            "szext.clamp.s32 %o, %x, %z;": ("i4", np.array(filled)),
            "szext.clamp.u32 %o, %x, %z;": ("u4", x & ((1 << cut.astype("u8")) - 1)),
        },
        x,
        first,
        width,
    )
    check("bits", {"and.b32 %r1, %y, 31; fns.b32 %o, %x, %r1, %z;": ("u4", np.array(places))}, x, first, turn)


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
def test_choices_and_properties() -> None:
    x, y, z = (values("f4", 96, seed) for seed in (36, 37, 38))
    size = np.abs(x)
    tiny = np.finfo("f4").tiny
    properties = {
        "finite": np.isfinite(x),
        "infinite": np.isinf(x),
        "number": ~np.isnan(x),
        "notanumber": np.isnan(x),
        "normal": np.isfinite(x) & (size >= tiny),
        "subnormal": (size > 0) & (size < tiny),
    }
    check(
        "f4",
        {
            **{f"testp.{name}.f32 %p, %x; selp.u32 %o, 1, 0, %p;": ("u4", holds) for name, holds in properties.items()},
            "slct.f32.f32 %o, %x, %y, %z;": ("f4", np.where(z >= 0, x, y)),
            "set.lt.u32.f32 %o, %x, %y;": ("u4", np.where(x < y, 0xFFFFFFFF, 0)),
            "set.geu.f32.f32 %o, %x, %y;": ("f4", ~(x < y)),
            "abs.f32 %o, %x;": ("f4", size),
            "abs.ftz.f32 %o, %x;": ("f4", np.where(size < tiny, 0, size)),
        },
        x,
        y,
        z,
    )
    a, b, c = (values("i4", 96, seed) for seed in (39, 40, 41))
    check(
        "i4",
        {
            "slct.s32.s32 %o, %x, %y, %z;": ("i4", np.where(c >= 0, a, b)),
            "set.le.s32.s32 %o, %x, %y;": ("i4", np.where(a <= b, -1, 0)),
            "abs.s32 %o, %x;": ("i4", np.abs(a)),
        },
        a,
        b,
        c,
    )


def test_branches_by_index() -> None:
    x = np.arange(64, dtype="u4")
    code = """and.b32 %r1, %x, 3; targets: .branchtargets zero, one, two, three; brx.idx %r1, targets;
    zero: mov.u32 %o, 10; bra over; one: mov.u32 %o, 20; bra over; two: mov.u32 %o, 30; bra over;
    three: mov.u32 %o, 40; over:"""
    check("u4", {code: ("u4", 10 * (x % 4 + 1))}, x)


def test_declarations_need_no_blanks() -> None:
    x = np.arange(16, dtype="u4")
    check(
        "u4",
        {
            "{.reg.b32 h,r;\n.reg.u32 %n<2>; add.u32 h, %x, 1; mul.lo.u32 r, h, 3; mov.u32 %n1, r; mov.u32 %o, %n1;}": (
                "u4",
                3 * x + 3,
            )
        },
        x,
    )


def test_approximate_functions_are_within_their_bounds() -> None:
    """The bounds are those of the PTX ISA, in the section of each instruction."""
    x = np.random.default_rng(42).uniform(0.001, 6.28, 400).astype("f4")
    wide = x.astype("f8")
    relative = {
        "ex2.approx.f32": (np.exp2(wide), 2.0**-22),
        "rsqrt.approx.f32": (1 / np.sqrt(wide), 2.0**-22.9),
        "rcp.approx.f32": (1 / wide, 2.0**-23),
        "sqrt.approx.f32": (np.sqrt(wide), 2.0**-23),
        "tanh.approx.f32": (np.tanh(wide), 2.0**-11),
    }
    absolute = {
        "sin.approx.f32": (np.sin(wide), 2.0**-20.5),
        "cos.approx.f32": (np.cos(wide), 2.0**-20.5),
        "lg2.approx.f32": (np.log2(wide), 2.0**-22),
    }
    found = evaluate([(f"{name} %o, %x;", "f4") for name in (*relative, *absolute)], x)
    for (name, (expected, bound)), result in zip((relative | absolute).items(), found, strict=True):
        scale = np.abs(expected) if name in relative else np.ones_like(wide)
        if name.startswith("lg2"):  # an absolute bound from 0.5 to 2 only
            scale = np.where((wide > 0.5) & (wide < 2), 1, np.abs(expected))
        assert (np.abs(result - expected) <= bound * scale).all(), name


def test_approximate_functions_of_halves() -> None:
    """Within the ISA's bounds for f16 and bf16, and half a step of the result's own format."""
    x = np.random.default_rng(43).uniform(-6, 6, 200).astype("f2")
    wide = x.astype("f8")
    brains = (x.astype("f4").view("u4") >> 16).astype("u2")
    seen = (brains.astype("u4") << 16).view("f4").astype("f8")
    pieces = {"tanh": np.tanh, "ex2": np.exp2}
    for name, function in pieces.items():
        ftz = "" if name == "tanh" else ".ftz"
        halves, pairs = evaluate(
            [
                (f"{name}.approx.f16 %o, %x;", "f2"),
                (f"mov.b32 %r1, {{%x, %x}}; {name}.approx.f16x2 %o, %r1;", "u4"),
            ],
            x,
        )
        narrow, packed = evaluate(
            [
                (f"{name}.approx{ftz}.bf16 %o, %x;", "u2"),
                (f"mov.b32 %r1, {{%x, %x}}; {name}.approx{ftz}.bf16x2 %o, %r1;", "u4"),
            ],
            brains,
        )
        np.testing.assert_allclose(halves.astype("f8"), function(wide), rtol=2.0**-9.9)
        assert (pairs == halves.view("u2") * np.uint32(0x10001)).all()
        np.testing.assert_allclose((narrow.astype("u4") << 16).view("f4"), function(seen), rtol=2.0**-7)
        assert (packed == narrow * np.uint32(0x10001)).all()


def test_gross_approximations_have_no_low_bits() -> None:
    """rcp and rsqrt of f64: the lower 32 bits of the result are zero, and it is within 2^-20 (PTX ISA, 9.7.3.14)."""
    x = np.random.default_rng(44).uniform(0.001, 1000, 200)
    found = evaluate([(f"{name}.approx.ftz.f64 %o, %x;", "f8") for name in ("rcp", "rsqrt")], x)
    for result, expected in zip(found, (1 / x, 1 / np.sqrt(x)), strict=True):
        assert not (result.view("u8") & 0xFFFFFFFF).any()
        np.testing.assert_allclose(result, expected, rtol=2.0**-19)


def test_moves_pack_and_unpack() -> None:
    x = values("u8", 64, 45)
    low, high = x & 0xFFFFFFFF, x >> 32
    turned = sum((x >> 16 * place & 0xFFFF) << 16 * (3 - place) for place in range(4))
    check(
        "u8",
        {
            "mov.b64 {%r1, %r2}, %x; mov.b64 %o, {%r2, %r1};": ("u8", low << 32 | high),
            "mov.b64 {%h1, %h2, %h3, %h4}, %x; mov.b64 %o, {%h4, %h3, %h2, %h1};": ("u8", turned),
            "mov.b64 {%r1, _}, %x; mov.b32 {%h1, %h2}, %r1; mov.b32 %r2, {%h2, %h1}; mov.b64 %o, {%r2, %r2};": (
                "u8",
                ((low >> 16) | (low & 0xFFFF) << 16) * np.uint64(2**32 + 1),
            ),
            "{ .reg .b128 %q; mov.b128 %q, {%x, 7}; .reg .b128 %s; mov.b128 %s, %q; mov.b128 {%w1, %w2}, %s; "
            "add.u64 %o, %w1, %w2; }": ("u8", x + np.uint64(7)),
            "{ .reg .pred %a; setp.ne.u64 %a, %x, 0; mov.pred %p, %a; selp.u64 %o, 5, 3, %p; }": (
                "u8",
                np.where(x != 0, 5, 3),
            ),
            "{ .reg .f64 %e; .reg .s64 %i; mov.f64 %e, %x; mov.s64 %i, %e; mov.u64 %o, %i; }": ("u8", x),
        },
        x,
    )
