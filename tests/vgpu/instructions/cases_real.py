"""Floating-point arithmetic (PTX ISA, 9.7.3 and 9.7.4): every form of the table, with exact results."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction

from tests.vgpu.instructions.case import MODES, Case
from tests.vgpu.instructions.isa import running
from tests.vgpu.instructions.ptx_reference import FORMATS, Real, clamped, extreme, over, plus, rectified, root, times

OPCODES = ("add", "sub", "mul", "fma", "mad", "div", "sqrt", "rcp", "min", "max", "abs", "neg")


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
    if name in ("fma", "mad"):
        return plus(times(numbers[0], numbers[1]), numbers[2], mode)
    if name == "mul":
        return times(*numbers)
    if name == "div":
        return over(*numbers)
    return plus(numbers[0], numbers[1] if name == "add" else -numbers[1], mode)


def real(form: str, inputs: int) -> Case:
    """An operation, with the modifiers and the type that its form names."""
    name, *modifiers, word = form.split(".")
    packed = word.endswith("x2")
    format_ = FORMATS[word.removesuffix("x2")]
    mode = next((modifier for modifier in modifiers if modifier in MODES), "rn")
    xor_sign = "xorsign" in modifiers

    def lane(*given: int) -> int:
        numbers = [format_.decode(value) for value in given]
        if "ftz" in modifiers:
            numbers = [format_.flushed(number) for number in numbers]
        sign = numbers[0].negative != numbers[-1].negative
        if "abs" in modifiers:
            numbers = [abs(number) for number in numbers]
        exact = operate(name, numbers, mode, "NaN" in modifiers)
        if xor_sign and not exact.is_nan:
            exact = Real(sign, exact.size, exact.infinite)
        result = format_.decode(format_.encode(exact, mode))
        if "ftz" in modifiers:
            result = format_.flushed(result)
        if "sat" in modifiers:
            result = clamped(result)
        return format_.encode(rectified(result) if "relu" in modifiers else result)

    def lanes(*given: int) -> int:
        low, high = (lane(*(value >> shift & 0xFFFF for value in given)) for shift in (0, 16))
        return high << 16 | low

    return Case(form, (word,) * inputs, word, lanes if packed else lane)


def numbers_of(word: str) -> list[Case]:
    """All operations on one type."""
    return [
        real(form.name, form.operands - 1)
        for form in running(*OPCODES)
        if form.modifiers[-1] == word and not {"approx", "full"} & set(form.modifiers)
    ]
