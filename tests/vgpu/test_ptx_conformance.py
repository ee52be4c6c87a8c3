"""Instructions of PTX, family by family and type by type, against exact values (`ptx_reference`), bit for bit.

Every case runs on edges of its types and on random bits. `test_ptx_coverage.py` reads the cases from here.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import product

import numpy as np
import pytest
from ptx import evaluate
from ptx_reference import (
    FORMATS,
    Format,
    Real,
    clamped,
    extreme,
    lesser,
    of_type,
    over,
    plus,
    rectified,
    root,
    signed,
    times,
    truncated_quotient,
    whole,
)

pytestmark = pytest.mark.virtual_gpu
POINTS = 96
LONG = ["u32", "s32", "u64", "s64"]
INTEGERS = ["u16", "s16", "u32", "s32", "u64", "s64"]
MODES = ["rn", "rz", "rm", "rp"]


@dataclass(frozen=True)
class Case:
    """One form of an instruction."""

    form: str
    inputs: tuple[str, ...]
    """Types of %x, %y and %z, as PTX names them."""
    result: str
    expected: Callable[..., int | None]
    """The result's bits from those of the inputs; None where the ISA leaves it open."""
    code: str = ""
    """Where the form alone is not the code."""

    @property
    def text(self) -> str:
        operands = ", ".join(f"%{letter}" for letter in "xyz"[: len(self.inputs)])
        return self.code or f"{self.form} %o, {operands};"

    @property
    def opcode(self) -> str:
        return self.form.split(".")[0]


def width(word: str) -> int:
    """Bits of a type."""
    if word.endswith("x2"):
        return 2 * width(word[:-2])
    return 1 if word == "pred" else int(word.lstrip("bfsu"))


# Integers


def arithmetic(word: str) -> list[Case]:
    """Sums, products, quotients, extrema of integers of one type."""
    bits, sign = width(word), word[0] == "s"

    def case(form: str, compute: Callable[..., int | None], inputs: int = 2, result: str = word) -> Case:
        return Case(form, (word,) * inputs, result, lambda *given: compute(*(of_type(word, value) for value in given)))

    def quotient(a: int, b: int) -> int | None:
        return truncated_quotient(a, b) if b else None

    def rest(a: int, b: int) -> int | None:
        return a - b * truncated_quotient(a, b) if b else None

    cases = [
        case(f"add.{word}", lambda a, b: a + b),
        case(f"sub.{word}", lambda a, b: a - b),
        case(f"mul.lo.{word}", lambda a, b: a * b),
        case(f"mul.hi.{word}", lambda a, b: a * b >> bits),
        case(f"mad.lo.{word}", lambda a, b, c: a * b + c, 3),
        case(f"mad.hi.{word}", lambda a, b, c: (a * b >> bits) + c, 3),
        case(f"div.{word}", quotient),
        case(f"rem.{word}", rest),
        case(f"min.{word}", min),
        case(f"max.{word}", max),
        case(f"sad.{word}", lambda a, b, c: abs(a - b) + c, 3),
    ]
    if bits < 64:
        wide = f"{word[0]}{2 * bits}"
        cases.append(case(f"mul.wide.{word}", lambda a, b: a * b, result=wide))
        cases.append(
            Case(
                f"mad.wide.{word}",
                (word, word, wide),
                wide,
                lambda a, b, c: of_type(word, a) * of_type(word, b) + of_type(wide, c),
            )
        )
    if sign:
        cases += [case(f"abs.{word}", abs, 1), case(f"neg.{word}", lambda a: -a, 1)]
    if word == "s32":
        low, high = -(2**31), 2**31 - 1
        cases += [
            case("add.sat.s32", lambda a, b: min(max(a + b, low), high)),
            case("sub.sat.s32", lambda a, b: min(max(a - b, low), high)),
            case("mad.hi.sat.s32", lambda a, b, c: min(max((a * b >> 32) + c, low), high), 3),
            case("min.relu.s32", lambda a, b: max(min(a, b), 0)),
            case("max.relu.s32", lambda a, b: max(a, b, 0)),
        ]
    return cases


def carries(word: str) -> list[Case]:
    """A carry, out of one sum and into the next; the low half of the result is the first sum."""
    bits = width(word)

    def case(first: str, second: str, compute: Callable[[int, int, int], int]) -> Case:
        code = (
            f"{{ .reg .{word} %s, %t; {first} %s, %x, %y{', %z' if 'mad' in first else ''}; "
            f"{second} %t, %x, {'%y, 0' if 'mad' in second else '0'}; xor.b{bits} %o, %s, %t; }}"
        )
        return Case(second, (word,) * 3, word, compute, code)

    mask = (1 << bits) - 1
    high = (lambda a, b: signed(a, bits) * signed(b, bits) >> bits) if word[0] == "s" else (lambda a, b: a * b >> bits)
    return [
        case(f"add.cc.{word}", f"addc.{word}", lambda a, b, _c: (a + b & mask) ^ (a + (a + b > mask) & mask)),
        case(f"sub.cc.{word}", f"subc.{word}", lambda a, b, _c: (a - b & mask) ^ (a - (a < b) & mask)),
        # GPUs keep a borrow as the opposite of a carry: nvcc's division of 128-bit integers relies on that.
        case(f"sub.cc.{word}", f"addc.{word}", lambda a, b, _c: (a - b & mask) ^ (a + (a >= b) & mask)),
        case(f"add.cc.{word}", f"subc.{word}", lambda a, b, _c: (a + b & mask) ^ (a - (a + b <= mask) & mask)),
        case(
            f"mad.lo.cc.{word}",
            f"madc.hi.{word}",
            lambda a, b, c: (a * b + c & mask) ^ (high(a, b) + ((a * b & mask) + c > mask) & mask),
        ),
    ]


def bits_of(word: str) -> list[Case]:
    """Logic, shifts, counts and fields of `b16`, `b32` or `b64`."""
    size = width(word)
    mask = (1 << size) - 1

    def case(form: str, compute: Callable[..., int | None], *inputs: str, result: str = word) -> Case:
        return Case(form, inputs, result, compute)

    cases = [
        case(f"and.{word}", lambda a, b: a & b, word, word),
        case(f"or.{word}", lambda a, b: a | b, word, word),
        case(f"xor.{word}", lambda a, b: a ^ b, word, word),
        case(f"not.{word}", lambda a: ~a, word),
        case(f"cnot.{word}", lambda a: int(a == 0), word),
        case(f"shl.{word}", lambda a, n: a << min(n, size), word, "u32"),
        case(f"shr.u{size}", lambda a, n: a >> min(n, size), word, "u32"),
        case(f"shr.s{size}", lambda a, n: signed(a, size) >> min(n, size), word, "u32"),
    ]
    if size == 16:
        return cases
    cases += [
        case(f"popc.{word}", lambda a: a.bit_count(), word, result="u32"),
        case(f"clz.{word}", lambda a: size - a.bit_length(), word, result="u32"),
        case(f"brev.{word}", lambda a: int(f"{a:0{size}b}"[::-1], 2), word),
        case(f"bfi.{word}", lambda a, b, p: inserted(a, b, p & 255, p >> 8 & 255, mask), word, word, "u32"),
    ]
    cases[-1] = Case(
        f"bfi.{word}",
        (word, word, "u32"),
        word,
        lambda a, b, p: inserted(a, b, p & 255, p >> 8 & 255, mask),
        f"and.b32 %r1, %z, 255; shr.u32 %r2, %z, 8; and.b32 %r2, %r2, 255; bfi.{word} %o, %x, %y, %r1, %r2;",
    )
    for kind in (f"u{size}", f"s{size}"):
        cases += [
            case(f"bfe.{kind}", lambda a, p, n, kind=kind: extracted(kind, a, p & 255, n & 255), word, "u32", "u32"),
            case(f"bfind.{kind}", lambda a, kind=kind: highest(kind, a), word, result="u32"),
            case(f"bfind.shiftamt.{kind}", lambda a, kind=kind: distance(kind, a), word, result="u32"),
        ]
    return cases


def inserted(a: int, b: int, place: int, length: int, mask: int) -> int:
    """bfi: `length` bits of a, at a place in b."""
    ones = ((1 << length) - 1) << place & mask
    return (a << place & ones) | (b & ~ones)


def extracted(kind: str, a: int, place: int, length: int) -> int:
    """bfe: beyond the highest bit it goes on with the sign."""
    size = width(kind)
    if length == 0:
        return 0
    field = (signed(a, size) if kind[0] == "s" else a) >> place & ((1 << length) - 1)
    top = a >> min(place + length - 1, size - 1) & 1
    return field | (-1 << length if kind[0] == "s" and top else 0)


def highest(kind: str, a: int) -> int:
    """bfind: the place of the highest bit that differs from the sign; -1 for none."""
    if kind[0] == "s" and signed(a, width(kind)) < 0:
        a = ~a & ((1 << width(kind)) - 1)
    return a.bit_length() - 1


def distance(kind: str, a: int) -> int:
    found = highest(kind, a)
    return found if found < 0 else width(kind) - 1 - found


def permuted(mode: str, a: int, b: int, c: int) -> int:
    """prmt."""
    source = (b << 32 | a).to_bytes(8, "little")
    low = c & 3
    places = {
        "f4e": [low, low + 1, low + 2, low + 3],
        "b4e": [low, (low - 1) & 7, (low - 2) & 7, (low - 3) & 7],
        "rc8": [low] * 4,
        "ecl": [max(low, place) for place in range(4)],
        "ecr": [min(low, place) for place in range(4)],
        "rc16": [2 * (c & 1), 2 * (c & 1) + 1] * 2,
    }
    if mode:
        return int.from_bytes(bytes(source[place] for place in places[mode]), "little")
    codes = [c >> 4 * place & 15 for place in range(4)]
    picked = [source[code & 7] if code < 8 else 255 * (source[code & 7] >> 7) for code in codes]
    return int.from_bytes(bytes(picked), "little")


def looked_up(table: int, *words: int) -> int:
    """lop3: bit by bit, the table's bit at the place that the three bits name."""
    return sum(
        (table >> ((words[0] >> bit & 1) << 2 | (words[1] >> bit & 1) << 1 | words[2] >> bit & 1) & 1) << bit
        for bit in range(32)
    )


def words_of_32() -> list[Case]:
    """What exists for registers of 32 bits only."""
    cases = [
        Case("lop3.b32", ("b32",) * 3, "b32", lambda a, b, c, t=table: looked_up(t, a, b, c),
             f"lop3.b32 %o, %x, %y, %z, {table};")
        for table in (0x00, 0x01, 0x1E, 0x2D, 0x3C, 0x5A, 0x78, 0x80, 0x96, 0xB8, 0xCA, 0xE8, 0xF8, 0xFE, 0xFF)
    ]  # fmt: skip
    for mode in ("", "f4e", "b4e", "rc8", "ecl", "ecr", "rc16"):
        form = f"prmt.b32{'.' + mode if mode else ''}"
        cases.append(Case(form, ("b32",) * 3, "b32", lambda a, b, c, mode=mode: permuted(mode, a, b, c)))
    for way, how in product("lr", ("wrap", "clamp")):

        def funnel(low: int, high: int, n: int, way: str = way, how: str = how) -> int:
            n = n & 31 if how == "wrap" else min(n, 32)
            pair = high << 32 | low
            return pair << n >> 32 if way == "l" else pair >> n

        cases.append(Case(f"shf.{way}.{how}.b32", ("b32", "b32", "u32"), "b32", funnel))
    for kind, part in product(("u32", "s32"), ("lo", "hi")):

        def small(a: int, kind: str = kind) -> int:
            return signed(a, 24) if kind[0] == "s" else a & 0xFFFFFF

        def product_24(a: int, b: int, part: str = part, small: Callable[[int], int] = small) -> int:
            return small(a) * small(b) >> (16 if part == "hi" else 0) & 0xFFFFFFFF

        cases.append(Case(f"mul24.{part}.{kind}", (kind,) * 2, kind, product_24))
        cases.append(Case(f"mad24.{part}.{kind}", (kind,) * 3, kind, lambda a, b, c, f=product_24: f(a, b) + c))
    for first, second in product("us", repeat=2):

        def dot(a: int, b: int, c: int, first: str = first, second: str = second) -> int:
            parts = [(of_type(f"{first}8", a >> 8 * n), of_type(f"{second}8", b >> 8 * n)) for n in range(4)]
            return c + sum(x * y for x, y in parts)

        cases.append(Case(f"dp4a.{first}32.{second}32", ("b32",) * 3, "b32", dot))
        for part in ("lo", "hi"):

            def dot_2(a: int, b: int, c: int, first: str = first, second: str = second, part: str = part) -> int:
                b >>= 16 if part == "hi" else 0
                parts = [(of_type(f"{first}16", a >> 16 * n), of_type(f"{second}8", b >> 8 * n)) for n in range(2)]
                return c + sum(x * y for x, y in parts)

            cases.append(Case(f"dp2a.{part}.{first}32.{second}32", ("b32",) * 3, "b32", dot_2))
    return cases


COMPARE: dict[str, Callable[[int, int], bool]] = {
    "eq": lambda a, b: a == b,
    "ne": lambda a, b: a != b,
    "lt": lambda a, b: a < b,
    "le": lambda a, b: a <= b,
    "gt": lambda a, b: a > b,
    "ge": lambda a, b: a >= b,
}
UNSIGNED = {"lo": "lt", "ls": "le", "hi": "gt", "hs": "ge"}


def comparisons(word: str) -> list[Case]:
    """setp and set, selp and slct of integers."""
    names = {name: name for name in COMPARE} | (UNSIGNED if word[0] == "u" else {})
    cases = [
        Case(f"setp.{name}.{word}", (word, word), "u32",
             lambda a, b, how=how: int(COMPARE[how](of_type(word, a), of_type(word, b))),
             f"setp.{name}.{word} %p, %x, %y; selp.u32 %o, 1, 0, %p;")
        for name, how in names.items()
    ]  # fmt: skip
    cases += [
        Case(f"set.{name}.u32.{word}", (word, word), "u32",
             lambda a, b, how=how: -int(COMPARE[how](of_type(word, a), of_type(word, b))))
        for name, how in names.items()
    ]  # fmt: skip
    cases.append(Case(f"selp.{word}", (word, word), word, lambda a, b: a if a & 1 else b,
                      f"cvt.u32.u{width(word)} %r1, %x; and.b32 %r1, %r1, 1; setp.ne.u32 %p, %r1, 0; "
                      f"selp.{word} %o, %x, %y, %p;"))  # fmt: skip
    cases.append(Case(f"slct.{word}.s32", (word, word, "s32"), word, lambda a, b, c: a if signed(c, 32) >= 0 else b))
    return cases


# Floating-point numbers


def operate(name: str, numbers: Sequence[Real], mode: str, nan: bool) -> Real:
    """The exact result of an operation."""
    if name in ("min", "max"):
        first = extreme(name, numbers[0], numbers[1], nan=nan)
        return extreme(name, first, numbers[2], nan=nan) if len(numbers) > 2 else first
    if name in ("abs", "neg"):
        return abs(numbers[0]) if name == "abs" else -numbers[0]
    if name == "sqrt":
        return root(numbers[0])
    if name == "rcp":
        return over(Real(False, Fraction(1)), numbers[0])
    if name == "fma":
        return plus(times(numbers[0], numbers[1]), numbers[2], mode)
    if name == "mul":
        return times(*numbers)
    if name == "div":
        return over(*numbers)
    return plus(numbers[0], numbers[1] if name == "add" else -numbers[1], mode)


def real(word: str, name: str, inputs: int, *modifiers: str) -> Case:
    """An operation of a type, with modifiers in the order that the ISA writes them."""
    packed = word.endswith("x2")
    form = FORMATS[word.removesuffix("x2")]
    mode = next((modifier for modifier in modifiers if modifier in MODES), "rn")
    xor_sign = "xorsign" in modifiers

    def lane(*given: int) -> int:
        numbers = [form.decode(value) for value in given]
        if "ftz" in modifiers:
            numbers = [form.flushed(number) for number in numbers]
        sign = numbers[0].negative != numbers[-1].negative
        if xor_sign:
            numbers = [abs(number) for number in numbers]
        exact = operate(name, numbers, mode, "NaN" in modifiers)
        if xor_sign and not exact.is_nan:
            exact = Real(sign, exact.size, exact.infinite)
        result = form.decode(form.encode(exact, mode))
        if "ftz" in modifiers:
            result = form.flushed(result)
        if "sat" in modifiers:
            result = clamped(result)
        return form.encode(rectified(result) if "relu" in modifiers else result)

    def lanes(*given: int) -> int:
        low, high = (lane(*(value >> shift & 0xFFFF for value in given)) for shift in (0, 16))
        return high << 16 | low

    text = ".".join([name, *(f"{m}.abs" if m == "xorsign" else m for m in modifiers), word])
    return Case(text, (word,) * inputs, word, lanes if packed else lane)


def singles_and_doubles(word: str) -> list[Case]:
    """Correctly rounded operations of f32 or f64."""
    arity = {"add": 2, "sub": 2, "mul": 2, "fma": 3, "div": 2, "sqrt": 1, "rcp": 1}
    cases = [real(word, name, count, mode) for name, count in arity.items() for mode in MODES]
    cases += [real(word, name, 2) for name in ("min", "max")] + [real(word, name, 1) for name in ("abs", "neg")]
    if word == "f32":
        for name, count in arity.items():
            cases += [real(word, name, count, mode, "ftz") for mode in MODES]
        for name in ("add", "sub", "mul", "fma"):
            cases += [real(word, name, arity[name], mode, "sat") for mode in MODES]
            cases.append(real(word, name, arity[name], "rn", "ftz", "sat"))
        for name in ("min", "max"):
            cases += [real(word, name, 2, "ftz"), real(word, name, 2, "NaN"), real(word, name, 2, "ftz", "NaN")]
            cases += [real(word, name, 2, "xorsign"), real(word, name, 2, "NaN", "xorsign")]
        cases += [real(word, name, 1, "ftz") for name in ("abs", "neg")]
    return cases


def halves(word: str) -> list[Case]:
    """Operations of f16, bf16 and pairs of them."""
    cases = [real(word, name, 2, "rn") for name in ("add", "sub", "mul")] + [real(word, "fma", 3, "rn")]
    cases += [real(word, name, 2, *more) for name in ("min", "max") for more in ([], ["NaN"])]
    cases += [real(word, name, 2, "NaN", "xorsign") for name in ("min", "max")]
    cases += [real(word, name, 1) for name in ("abs", "neg")]
    cases.append(real(word, "fma", 3, "rn", "relu"))
    if word.startswith("f16"):
        cases += [real(word, name, 2, "rn", "sat") for name in ("add", "sub", "mul")]
        cases += [real(word, name, 2, "rn", "ftz") for name in ("add", "sub", "mul")]
        cases += [real(word, "fma", 3, "rn", "sat"), real(word, "fma", 3, "rn", "ftz")]
        cases += [real(word, name, 2, "ftz") for name in ("min", "max")]
    return cases


ORDER: dict[str, Callable[[Real, Real], bool]] = {
    "eq": lambda a, b: (not lesser(a, b) and not lesser(b, a)) or (a.is_zero and b.is_zero),
    "lt": lambda a, b: lesser(a, b) and not (a.is_zero and b.is_zero),
}
ORDER["le"] = lambda a, b: ORDER["lt"](a, b) or ORDER["eq"](a, b)
ORDER["gt"] = lambda a, b: ORDER["lt"](b, a)
ORDER["ge"] = lambda a, b: ORDER["le"](b, a)
ORDER["ne"] = lambda a, b: not ORDER["eq"](a, b)


def real_comparisons(word: str) -> list[Case]:
    """setp of floating-point numbers, ordered and unordered; selp and slct, testp and copysign."""
    form = FORMATS[word]

    def holds(name: str, a: Real, b: Real) -> bool:
        unordered = a.is_nan or b.is_nan
        if name in ("num", "nan"):
            return unordered == (name == "nan")
        if unordered:
            return name.endswith("u")
        return ORDER[name.removesuffix("u") if name.endswith("u") else name](a, b)

    names = [*ORDER, *(f"{name}u" for name in ORDER), "num", "nan"]
    cases = [
        Case(f"setp.{name}.{word}", (word, word), "u32",
             lambda a, b, name=name: int(holds(name, form.decode(a), form.decode(b))),
             f"setp.{name}.{word} %p, %x, %y; selp.u32 %o, 1, 0, %p;")
        for name in names
    ]  # fmt: skip
    if word in ("f32", "f64"):
        kinds: dict[str, Callable[[Real], bool]] = {
            "finite": lambda a: a.size is not None,
            "infinite": lambda a: a.infinite,
            "number": lambda a: not a.is_nan,
            "notanumber": lambda a: a.is_nan,
            "normal": lambda a: a.size is not None and a.size >= form.smallest_normal,
            "subnormal": lambda a: a.size is not None and 0 < a.size < form.smallest_normal,
        }
        cases += [
            Case(f"testp.{name}.{word}", (word,), "u32", lambda a, kind=kind: int(kind(form.decode(a))),
                 f"testp.{name}.{word} %p, %x; selp.u32 %o, 1, 0, %p;")
            for name, kind in kinds.items()
        ]  # fmt: skip
        top = 1 << (form.width - 1)
        cases.append(Case(f"copysign.{word}", (word, word), f"b{form.width}", lambda a, b: (a & top) | (b & (top - 1))))
        cases.append(Case(f"selp.{word}", (word, word), f"b{form.width}", lambda a, b: b,
                          f"setp.ne.u32 %p, 0, 0; selp.{word} %o, %x, %y, %p;"))  # fmt: skip
    return cases


# Atomics


def atomics() -> list[Case]:
    """atom and red in both spaces, what is there before and after; orders and scopes take turns."""
    logic: dict[str, Callable[[int, int], int]] = {
        "and": lambda a, b: a & b, "or": lambda a, b: a | b, "xor": lambda a, b: a ^ b, "exch": lambda _a, b: b
    }  # fmt: skip
    after: list[tuple[str, str, Callable[[int, int], int | None]]] = [
        ("inc", "u32", lambda a, b: 0 if a >= b else a + 1),
        ("dec", "u32", lambda a, b: b if a == 0 or a > b else a - 1),
        ("cas", "b16", lambda a, b: b),
        ("cas", "b32", lambda a, b: b),
        ("cas", "b64", lambda a, b: b),
    ]
    after += [(name, word, compute) for name, compute in logic.items() for word in ("b32", "b64")]
    after += [("add", word, lambda a, b: a + b) for word in ("u32", "s32", "u64")]
    for name, word in product(("min", "max"), LONG):
        pick = min if name == "min" else max
        after.append((name, word, lambda a, b, pick=pick, word=word: pick(of_type(word, a), of_type(word, b))))
    for word in ("f32", "f64", "f16", "f16x2", "bf16", "bf16x2"):
        after.append(("add" if word in ("f32", "f64") else "add.noftz", word, real(word, "add", 2, "rn").expected))
    orders = ["", "relaxed.gpu.", "acq_rel.cta.", "acquire.sys.", "release.gpu."]
    cases: list[Case] = []
    for number, (space, (name, word, compute)) in enumerate(product(("global", "shared"), after)):
        size, order = width(word), orders[number % len(orders)]
        address = f"mad.wide.u32 %w1, %r0, {size // 8}, %a1;" if space == "global" else f"mov.u64 %w1, slot{number};"
        declared = "" if space == "global" else f".shared .align 8 .b64 slot{number};"
        given = "%x, %y" if name == "cas" else "%y"
        start = f"{declared} {address} st.{space}.b{size} [%w1], %x; atom.{order}{space}.{name}.{word}"
        end = f"ld.{space}.b{size} %o, [%w1]; st.{space}.b{size} [%w1], %x; }}"
        form = f"atom.{order}{space}.{name}.{word}"

        def changed(
            a: int, b: int, compute: Callable[[int, int], int | None] = compute, word: str = word, space: str = space
        ) -> int | None:
            if word == "f32" and space == "global":  # there, a GPU may take subnormal numbers for zeros
                single = FORMATS["f32"]
                numbers = [single.decode(bits) for bits in (a, b, compute(a, b) or 0)]
                if any(single.flushed(number) != number for number in numbers):
                    return None
            return compute(a, b)

        # What lay there is the result of the first, what lies there then of the others.
        cases.append(Case(form, (word, word), f"b{size}", lambda a, _b: a,
                          f"{{ {start} %o, [%w1], {given}; st.{space}.b{size} [%w1], %x; }}"))  # fmt: skip
        cases.append(Case(form, (word, word), word, changed,
                          f"{{ .reg .b{size} %old; {start} %old, [%w1], {given}; {end}"))  # fmt: skip
        if name not in ("exch", "cas"):
            text = f"{{ {start} [%w1], %y; {end}".replace("atom.", "red.")
            relaxed = {"acq_rel.": "relaxed.", "acquire.": "relaxed."}
            for strong, weak in relaxed.items():
                text = text.replace(strong, weak)
            cases.append(Case(form.replace("atom", "red"), (word, word), word, changed, text))
    return cases


# Conversions


def between_integers() -> list[Case]:
    cases = []
    kinds = [f"{sign}{size}" for sign in "us" for size in (8, 16, 32, 64)]
    for to, source in product(kinds, kinds):
        low, high = (-(1 << width(to) - 1), (1 << width(to) - 1) - 1) if to[0] == "s" else (0, (1 << width(to)) - 1)
        cases.append(Case(f"cvt.{to}.{source}", (source,), to, lambda a, s=source: of_type(s, a)))
        cases.append(
            Case(f"cvt.sat.{to}.{source}", (source,), to,
                 lambda a, s=source, low=low, high=high: min(max(of_type(s, a), low), high))
        )  # fmt: skip
    return cases


def to_integers() -> list[Case]:
    cases = []
    for source, to, mode in product(FORMATS, ("u8", "s8", *INTEGERS), ("rni", "rzi", "rmi", "rpi")):
        form = FORMATS[source]
        if source == "bf16" and width(to) == 8:
            continue
        low, high = (-(1 << width(to) - 1), (1 << width(to) - 1) - 1) if to[0] == "s" else (0, (1 << width(to)) - 1)

        def convert(a: int, form: Format = form, mode: str = mode, low: int = low, high: int = high) -> int | None:
            number = whole(form.decode(a), mode)
            if number.is_nan:
                return None  # checked apart
            if number.infinite:
                return low if number.negative else high
            return min(max(int(number.value), low), high)

        cases.append(Case(f"cvt.{mode}.{to}.{source}", (source,), to, convert))
    return cases


def to_reals() -> list[Case]:
    cases = []
    for to, form in FORMATS.items():
        for source, mode in product(("u8", "s8", *INTEGERS), MODES):

            def exactly(a: int, form: Format = form, source: str = source, mode: str = mode) -> int:
                given = of_type(source, a)
                return form.encode(Real(given < 0, Fraction(abs(given))), mode)

            cases.append(Case(f"cvt.{mode}.{to}.{source}", (source,), to, exactly))
        for source, wide in FORMATS.items():
            if (to, source) == ("bf16", "bf16"):
                continue

            def convert(
                a: int, mode: str = "rn", more: Callable[[Real], Real] = lambda r: r, to_form: Format = form,
                from_form: Format = wide,
            ) -> int:  # fmt: skip
                return to_form.encode(more(to_form.decode(to_form.encode(from_form.decode(a), mode))))

            narrows = wide.precision > form.precision or wide.largest_exponent > form.largest_exponent
            if to == source:
                for mode in ("rni", "rzi", "rmi", "rpi"):
                    cases.append(Case(f"cvt.{mode}.{to}.{source}", (source,), to,
                                      lambda a, m=mode, f=form: f.encode(whole(f.decode(a), m))))  # fmt: skip
                cases.append(Case(f"cvt.sat.{to}.{source}", (source,), to, lambda a, c=convert: c(a, more=clamped)))
            elif not narrows:
                cases.append(Case(f"cvt.{to}.{source}", (source,), to, convert))
            else:
                modes = MODES if to != "bf16" else ["rn", "rz", "rm", "rp"]
                for mode in modes:
                    cases.append(Case(f"cvt.{mode}.{to}.{source}", (source,), to, lambda a, m=mode, c=convert: c(a, m)))
                if source == "f32":
                    for mode in ("rn", "rz"):
                        cases.append(Case(f"cvt.{mode}.relu.{to}.{source}", (source,), to,
                                          lambda a, m=mode, c=convert: c(a, m, rectified)))  # fmt: skip
    for to in ("f16", "bf16"):
        for mode, more in product(("rn", "rz"), ("", "relu.")):

            def pair(high: int, low: int, to: str = to, mode: str = mode, more: str = more) -> int:
                parts = [FORMATS[to].decode(FORMATS[to].encode(FORMATS["f32"].decode(a), mode)) for a in (high, low)]
                parts = [rectified(part) if more else part for part in parts]
                return FORMATS[to].encode(parts[0]) << 16 | FORMATS[to].encode(parts[1])

            cases.append(Case(f"cvt.{mode}.{more}{to}x2.f32", ("f32", "f32"), f"{to}x2", pair))
    return cases


FAMILIES: dict[str, Callable[[], list[Case]]] = {
    **{f"arithmetic of {word}": lambda word=word: arithmetic(word) for word in INTEGERS},
    "carries": lambda: [case for word in LONG for case in carries(word)],
    **{f"bits of {word}": lambda word=word: bits_of(word) for word in ("b16", "b32", "b64")},
    "words of 32 bits": words_of_32,
    "comparisons of integers": lambda: [case for word in INTEGERS for case in comparisons(word)],
    "f32": lambda: singles_and_doubles("f32"),
    "f64": lambda: singles_and_doubles("f64"),
    **{word: lambda word=word: halves(word) for word in ("f16", "f16x2", "bf16", "bf16x2")},
    "comparisons of numbers": lambda: [case for word in FORMATS for case in real_comparisons(word)],
    "atomics": atomics,
    "cvt between integers": between_integers,
    "cvt to integers": to_integers,
    "cvt to numbers": to_reals,
}


def edges(word: str) -> list[int]:
    """Bits at the edges of a type."""
    if word.endswith("x2"):
        single = edges(word[:-2])
        return [low | high << 16 for low, high in zip(single, single[3:] + single[:3], strict=True)]
    size = width(word)
    if "f" in word:
        form = FORMATS[word]
        one, top = form.largest_exponent << form.fraction_bits, 1 << (size - 1)
        infinity = (2 * form.largest_exponent + 1) << form.fraction_bits
        least, tie = 1 << form.fraction_bits, 1 << (form.fraction_bits - 1)
        sizes = [0, 1, 2, least - 1, least, least + 1, one - 1, one, one + 1, one + tie, one + least, one + least + tie]
        sizes += [infinity - 1, infinity, infinity + 1, infinity - least, one - least, one + 3 * least]
        return sizes + [top | size for size in sizes]
    return [0, 1, 2, 3, 31, 32, 33, 63, 64, 255, 1 << size - 1, (1 << size - 1) - 1, (1 << size) - 1, (1 << size) - 2]


def inputs(word: str, seed: int) -> np.ndarray:
    """Bits of a type: the edges and random ones, shuffled; of numbers, half of the random ones are near 1."""
    random = np.random.default_rng(seed)
    size = width(word)
    bits = [value & ((1 << size) - 1) for value in edges(word)]
    rest = random.integers(0, 1 << size, POINTS, np.uint64, endpoint=False) if size < 64 else random.integers(
        0, 2**64 - 1, POINTS, np.uint64, endpoint=True
    )  # fmt: skip
    if "f" in word and not word.endswith("x2"):
        form = FORMATS[word]
        moved = random.integers(-12, 13, POINTS) + form.largest_exponent
        near = (rest & ((1 << form.fraction_bits) - 1)) | (moved.astype(np.uint64) << np.uint64(form.fraction_bits))
        near |= (random.integers(0, 2, POINTS).astype(np.uint64)) << np.uint64(size - 1)
        rest = np.where(np.arange(POINTS) % 2 == 0, near, rest)
    elif "f" not in word:
        rest = np.where(np.arange(POINTS) % 3 == 0, rest % np.uint64(80), rest)
    made = np.concatenate([np.array(bits, np.uint64), rest])[:POINTS]
    return np.asarray(random.permutation(made)).astype(f"u{max(size // 8, 1)}")


def is_nan(word: str, bits: int) -> bool:
    return word in FORMATS and FORMATS[word].decode(bits).is_nan


def same(word: str, found: int, expected: int) -> bool:
    """Whether bits are alike; one NaN is like another."""
    if word.endswith("x2") and word[:-2] in FORMATS:
        return all(same(word[:-2], found >> s & 0xFFFF, expected >> s & 0xFFFF) for s in (0, 16))
    if is_nan(word, expected):
        return is_nan(word, found)
    return found == expected


@pytest.mark.parametrize("family", FAMILIES)
def test_instructions_compute_what_the_isa_says(family: str) -> None:
    groups: dict[tuple[str, ...], list[Case]] = {}
    for case in FAMILIES[family]():
        groups.setdefault(tuple(word if "f" in word else f"b{width(word)}" for word in case.inputs), []).append(case)
    wrong = []
    for words, cases in groups.items():
        given = [inputs(word, seed) for seed, word in enumerate(words)]
        pieces = [(case.text, f"u{max(width(case.result) // 8, 1)}") for case in cases]
        results = evaluate(pieces, *given)
        rows = list(zip(*(values.tolist() for values in given), strict=True))
        for case, found in zip(cases, results, strict=True):
            mask = (1 << width(case.result)) - 1
            for row, value in zip(rows, found.tolist(), strict=True):
                expected = case.expected(*row)
                if expected is not None and not same(case.result, value, expected & mask):
                    wrong.append(f"{case.form} of {[hex(x) for x in row]}: {value:#x}, not {expected & mask:#x}")
                    break
    assert wrong == []
