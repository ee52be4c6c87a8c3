"""Integer arithmetic (PTX ISA, 9.7.1 and 9.7.2)."""

from __future__ import annotations

from collections.abc import Callable
from itertools import product

from tests.vgpu.instructions.case import Case, width
from tests.vgpu.instructions.isa import Form, running
from tests.vgpu.instructions.ptx_reference import of_type, signed, truncated_quotient


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
    """A carry, out of one sum and into the next, which may hand on one too: the results of all, joined.

    GPUs keep a borrow as the opposite of a carry: nvcc's division of 128-bit integers relies on that.
    """
    bits = width(word)
    mask = (1 << bits) - 1

    def part(form: str, a: int, b: int) -> int:
        whole = of_type(word, a) * of_type(word, b) if word[0] == "s" else a * b
        return (whole >> bits if ".hi" in form else whole) & mask

    def step(form: str, carry: int, a: int, b: int, c: int) -> tuple[int, int]:
        """The result and the carry that it leaves."""
        taken = form.split(".")[0].endswith("c")
        if form.startswith("sub"):
            total = a - b - (1 - carry if taken else 0)
            return total & mask, int(total >= 0)
        total = (part(form, a, b) + c if form.startswith("mad") else a + b) + (carry if taken else 0)
        return total & mask, int(total > mask)

    def case(form: str, *chain: str) -> Case:
        code = "{ .reg ." + word + " %s; mov.b" + f"{bits} %o, 0; "
        for name in chain:
            code += f"{name}.{word} %s, %x, %y{', %z' if 'mad' in name else ''}; "
            code += f"xor.b{bits} %o, %o, %s; shf.l.wrap.b32 %o, %o, %o, 1; " if bits == 32 else "xor.b64 %o, %o, %s; "
        code += "}"

        def expected(a: int, b: int, c: int) -> int:
            carry, joined = 0, 0
            for name in chain:
                result, carry = step(name, carry, a, b, c)
                joined ^= result
                if bits == 32:
                    joined = (joined << 1 | joined >> 31) & mask
            return joined

        return Case(f"{form}.{word}", (word,) * 3, word, expected, code)

    starts = ("add.cc", "sub.cc", "mad.lo.cc", "mad.hi.cc")
    cases = [case(start, start, "addc") for start in starts]
    for middle in ("addc", "subc", "madc.lo", "madc.hi"):
        cases += [case(middle, start, middle) for start in starts]
        cases += [case(f"{middle}.cc", start, f"{middle}.cc", "addc") for start in starts]
    return cases


def side_by_side(form: Form) -> Case:
    """Two integers of 16 bits."""
    word = form.modifiers[-1][0] + "16"

    def lane(a: int, b: int) -> int:
        pair = of_type(word, a), of_type(word, b)
        value = sum(pair) if form.opcode == "add" else (min if form.opcode == "min" else max)(pair)
        return (max(value, 0) if "relu" in form.modifiers else value) & 0xFFFF

    return Case(form.name, ("b32", "b32"), "b32", lambda a, b: lane(a >> 16, b >> 16) << 16 | lane(a, b))


def pairs() -> list[Case]:
    return [side_by_side(form) for form in running("add", "min", "max") if form.modifiers[-1] in ("u16x2", "s16x2")]


def small_products() -> list[Case]:
    """mul24 and mad24, dp4a and dp2a."""
    cases = []
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
    cases.append(
        Case("mad24.hi.sat.s32", ("s32",) * 3, "s32", lambda a, b, c: min(
            max(of_type("s32", signed(a, 24) * signed(b, 24) >> 16) + of_type("s32", c), -(2**31)), 2**31 - 1))
    )  # fmt: skip
    return cases
