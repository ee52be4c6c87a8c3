"""Video instructions (PTX ISA, 9.7.18), after the pseudocode there: every form of the table."""

from __future__ import annotations

import operator
import re
from collections.abc import Callable

from tests.vgpu.instructions.case import Case
from tests.vgpu.instructions.isa import Form, running
from tests.vgpu.instructions.ptx_reference import of_type, signed

COMPARE: dict[str, Callable[[int, int], bool]] = {
    "eq": operator.eq, "ne": operator.ne, "lt": operator.lt, "le": operator.le, "gt": operator.gt, "ge": operator.ge
}  # fmt: skip
OPCODES = ("vadd", "vsub", "vabsdiff", "vmin", "vmax", "vshl", "vshr", "vmad", "vset")
SIDE_BY_SIDE = ("vadd", "vsub", "vavrg", "vabsdiff", "vmin", "vmax", "vset")


def selectors(form: Form) -> list[str]:
    """What stands behind the dots of result and operands."""
    operands = form.code.partition(" ")[2].rstrip(";").split(", ")
    return [operand.partition(".")[2] for operand in operands]


def part(bits: int, sign: str, selector: str) -> int:
    """A byte, a half or all of a word, with its sign."""
    if not selector:
        return of_type(f"{sign}32", bits)
    size = 8 if selector[0] == "b" else 16
    return of_type(f"{sign}{size}", bits >> size * int(selector[1]))


def clamped(value: int, sign: str, size: int) -> int:
    low, high = (-(1 << size - 1), (1 << size - 1) - 1) if sign == "s" else (0, (1 << size) - 1)
    return min(max(value, low), high)


def operate(name: str, words: list[str], a: int, b: int) -> int:
    """The result with all its bits."""
    if name in ("vshl", "vshr"):
        b = b & 31 if "wrap" in words else min(b, 32)
        return a << b if name == "vshl" else a >> b
    if name == "vset":
        return int(COMPARE[next(word for word in words if word in COMPARE)](a, b))
    return {
        "vadd": a + b,
        "vsub": a - b,
        "vabsdiff": abs(a - b),
        "vmin": min(a, b),
        "vmax": max(a, b),
        "vavrg": a + b + 1 >> 1 if a + b >= 0 else a + b >> 1,
    }[name]


def code_of(form: Form) -> str:
    """The statement with the registers of a case."""
    names = iter(("%o", "%x", "%y", "%z"))
    return re.sub(r"%r\d+", lambda _: next(names), form.code)


def types(form: Form) -> list[str]:
    """The signs of result and operands: a comparison's result has none."""
    signs = [word[0] for word in form.modifiers if word in ("u32", "s32")]
    return ["u", *signs] if form.opcode.startswith("vset") else signs


def scalar(form: Form) -> Case:
    """One part of each word; joined with the third operand, or put into it."""
    words, chosen, signs = form.modifiers, selectors(form), types(form)
    join = next((word for word in words if word in ("add", "min", "max")), None)

    def compute(a: int, b: int, c: int = 0) -> int:
        value = operate(form.opcode, words, part(a, signs[1], chosen[1]), part(b, signs[2], chosen[2]))
        size = {"": 32, "b": 8, "h": 16}[chosen[0][:1]]
        if "sat" in words:
            value = clamped(value, signs[0], size)
        if join:
            first, second = of_type(f"{signs[0]}32", value), of_type(f"{signs[0]}32", c)
            return first + second if join == "add" else (min if join == "min" else max)(first, second)
        if not chosen[0]:
            return value
        place = size * int(chosen[0][1])
        ones = (1 << size) - 1 << place
        return (c & ~ones) | (value << place & ones)

    return Case(form.name, ("b32",) * (form.operands - 1), "b32", compute, code_of(form))


def multiply(form: Form) -> Case:
    """vmad: exact, before it is shifted and cut off."""
    words, chosen, signs = form.modifiers, selectors(form), types(form)
    minus = [operand.startswith("-") for operand in form.code.partition(" ")[2].split(", ")]
    opposite = minus[1] != minus[2]
    sign = "s" if "s" in signs[1:] or opposite or minus[3] else "u"

    def compute(a: int, b: int, c: int) -> int:
        product = part(a, signs[1], chosen[1]) * part(b, signs[2], chosen[2])
        added = of_type(f"{sign}32", c)
        total = (-product if opposite else product) + (-added if minus[3] else added) + ("po" in words)
        total >>= 7 if "shr7" in words else 15 if "shr15" in words else 0
        return clamped(total, sign, 32) if "sat" in words else total

    return Case(form.name, ("b32",) * 3, "b32", compute, code_of(form))


def lanes(form: Form) -> Case:
    """2 or 4 parts of each word; lanes that are not asked for are the third operand's, or add nothing."""
    count, name = int(form.opcode[-1]), form.opcode[:-1]
    size = 32 // count
    words, chosen, signs = form.modifiers, selectors(form), types(form)

    def compute(a: int, b: int, c: int) -> int:
        parts = [value >> size * place & (1 << size) - 1 for value in (a, b) for place in range(count)]
        results = []
        for lane in range(count):
            sources = [
                int(text[1:][::-1][lane]) if text else lane + count * side for side, text in enumerate(chosen[1:3])
            ]
            first, second = (signed(parts[at], size) if sign == "s" else parts[at]
                             for at, sign in zip(sources, signs[1:], strict=True))  # fmt: skip
            value = operate(name, words, first, second)
            results.append(clamped(value, signs[0], size) if "sat" in words else value)
        asked = [not chosen[0] or str(lane) in chosen[0] for lane in range(count)]
        if "add" in words:
            return c + sum(result for result, one in zip(results, asked, strict=True) if one)
        mask = (1 << size) - 1
        kept = [
            result if one else c >> size * lane for lane, (result, one) in enumerate(zip(results, asked, strict=True))
        ]
        return sum((value & mask) << size * lane for lane, value in enumerate(kept))

    return Case(form.name, ("b32",) * 3, "b32", compute, code_of(form))


def video() -> list[Case]:
    """All of them."""
    cases = [multiply(form) if form.opcode == "vmad" else scalar(form) for form in running(*OPCODES)]
    return cases + [lanes(form) for form in running(*(f"{name}{count}" for name in SIDE_BY_SIDE for count in (2, 4)))]
