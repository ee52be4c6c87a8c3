"""Comparisons and selections (PTX ISA, 9.7.6 and 9.7.7): every form of the table; `testp` and `copysign`."""

from __future__ import annotations

import operator
from collections.abc import Callable

from tests.vgpu.instructions.case import Case, width
from tests.vgpu.instructions.isa import Form, running
from tests.vgpu.instructions.ptx_reference import FORMATS, Format, Real, lesser, of_type, signed

COMPARE: dict[str, Callable[[int, int], bool]] = {
    "eq": operator.eq, "ne": operator.ne, "lt": operator.lt, "le": operator.le, "gt": operator.gt, "ge": operator.ge,
    "lo": operator.lt, "ls": operator.le, "hi": operator.gt, "hs": operator.ge,
}  # fmt: skip
JOIN: dict[str, Callable[[bool, bool], bool]] = {"and": operator.and_, "or": operator.or_, "xor": operator.xor}
ONE = {"f16": 0x3C00, "bf16": 0x3F80, "f32": 0x3F800000}
JOINED = "and.b{size} %{kind}7, %x, 1; setp.ne.u{size} %q, %{kind}7, 0;"
"""Sets a predicate to the lowest bit of %x."""


def order(how: str, a: Real, b: Real) -> bool:
    """A comparison of numbers; those that end in u hold also where one is none."""
    unordered = a.is_nan or b.is_nan
    if how in ("num", "nan"):
        return unordered == (how == "nan")
    if unordered:
        return how.endswith("u")
    sign = 0 if a.is_zero and b.is_zero else int(lesser(b, a)) - int(lesser(a, b))
    return COMPARE[how.removesuffix("u")](sign, 0)


def holds(form: Form, word: str, how: str, a: int, b: int) -> bool:
    """Whether values of a type compare as the form says."""
    if word not in FORMATS:
        return COMPARE[how](of_type(word, a), of_type(word, b))
    numbers = [FORMATS[word].decode(bits) for bits in (a, b)]
    if "ftz" in form.modifiers:
        numbers = [FORMATS[word].flushed(number) for number in numbers]
    return order(how, *numbers)


def answers(form: Form, word: str, a: int, b: int) -> list[tuple[bool, bool]]:
    """The comparison of each lane and its opposite, joined with the lowest bit of the first value."""
    how, *others = form.modifiers
    join = JOIN.get(others[0])
    lanes = [(a, b)]
    if word.endswith("x2"):
        word, lanes = word[:-2], [(a & 0xFFFF, b & 0xFFFF), (a >> 16, b >> 16)]
    found = [holds(form, word, how, *lane) for lane in lanes]
    bit = bool(a & 1)
    return [(join(one, bit), join(not one, bit)) if join else (one, not one) for one in found]


def lowest_bit(form: Form, word: str) -> str:
    """Code for the predicate that a form joins."""
    size = width(word)
    return JOINED.format(size=size, kind={16: "h", 32: "r", 64: "w"}[size]) if form.modifiers[1] in JOIN else ""


def of_register(word: str) -> str:
    """The type of the register that `%x` is: bits, so that logic may be done with it."""
    return f"b{width(word)}"


def predicate(form: Form) -> Case:
    """setp: one or two predicates."""
    word = form.modifiers[-1]
    both, packed = "|" in form.code, word.endswith("x2")
    joined = ", %q" if form.modifiers[1] in JOIN else ""
    code = (
        f"{{ .reg .pred %a, %b; {lowest_bit(form, word)} setp.{'.'.join(form.modifiers)} {'%a|%b' if both else '%a'}, "
        f"%x, %y{joined}; selp.u32 %o, 1, 0, %a; {'@%b add.u32 %o, %o, 2;' if both else ''} }}"
    )

    def expected(a: int, b: int) -> int:
        lanes = answers(form, word, a, b)
        second = lanes[1][0] if packed else lanes[0][1]
        return lanes[0][0] + 2 * (both and second)

    return Case(form.name, (word, word), "u32", expected, code)


def value(form: Form) -> Case:
    """set: ones, or 1.0, where the comparison holds; two lanes side by side."""
    to, word = form.modifiers[-2:]
    joined = ", %q" if form.modifiers[1] in JOIN else ""
    code = f"{lowest_bit(form, word)} {form.name} %o, %x, %y{joined};"
    lane = to.removesuffix("x2")
    packed = word.endswith("x2")
    one = ONE[lane] if lane in ONE else (0xFFFF if packed else (1 << width(to)) - 1)

    def expected(a: int, b: int) -> int:
        lanes = [one * answer for answer, _ in answers(form, word, a, b)]
        return lanes[0] | (lanes[1] << 16 if packed else 0)

    return Case(form.name, (word, word), of_register(to), expected, code)


def selection(form: Form) -> Case:
    """selp by the lowest bit of the first value, slct by the sign of the third; the bits stay as they are."""
    if form.opcode == "selp":
        word = of_register(form.modifiers[0])
        size = width(word)
        code = f"{JOINED.format(size=size, kind={16: 'h', 32: 'r', 64: 'w'}[size])} {form.name} %o, %x, %y, %q;"
        return Case(form.name, (word, word), word, lambda a, b: a if a & 1 else b, code)
    word, by = of_register(form.modifiers[-2]), form.modifiers[-1]

    def first(c: int) -> bool:
        if by == "s32":
            return signed(c, 32) >= 0
        number = FORMATS["f32"].decode(c)
        number = FORMATS["f32"].flushed(number) if "ftz" in form.modifiers else number
        return not number.is_nan and (number.is_zero or not number.negative)

    return Case(form.name, (word, word, by), word, lambda a, b, c: a if first(c) else b)


def property_of(form: Form) -> Case:
    """testp"""
    name, word = form.modifiers
    format_ = FORMATS[word]
    kinds: dict[str, Callable[[Real], bool]] = {
        "finite": lambda a: a.size is not None,
        "infinite": lambda a: a.infinite,
        "number": lambda a: not a.is_nan,
        "notanumber": lambda a: a.is_nan,
        "normal": lambda a: a.size is not None and a.size >= format_.smallest_normal,
        "subnormal": lambda a: a.size is not None and 0 < a.size < format_.smallest_normal,
    }
    code = f"{form.name} %p, %x; selp.u32 %o, 1, 0, %p;"
    return Case(form.name, (word,), "u32", lambda a: int(kinds[name](format_.decode(a))), code)


def sign_of(form: Form) -> Case:
    """copysign"""
    format_: Format = FORMATS[form.modifiers[-1]]
    top = 1 << (format_.width - 1)
    word = form.modifiers[-1]
    return Case(form.name, (word, word), f"b{format_.width}", lambda a, b: (a & top) | (b & (top - 1)))


def comparisons(*opcodes: str) -> list[Case]:
    """All forms of these opcodes."""
    kinds = {"setp": predicate, "set": value, "selp": selection, "slct": selection, "testp": property_of,
             "copysign": sign_of}  # fmt: skip
    return [kinds[form.opcode](form) for form in running(*opcodes)]
