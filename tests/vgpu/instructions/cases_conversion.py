"""Conversions (PTX ISA, 9.7.9.21 and 9.7.9.22): every form of the table."""

from __future__ import annotations

from fractions import Fraction

from tests.vgpu.instructions.case import MODES, Case, width
from tests.vgpu.instructions.isa import Form, running
from tests.vgpu.instructions.ptx_reference import FORMATS, Real, clamped, of_type, rectified, whole

WHOLE = ("rni", "rzi", "rmi", "rpi")


def bounds(word: str) -> tuple[int, int]:
    """The least and the largest number of a type of integers."""
    size = width(word)
    return (-(1 << size - 1), (1 << size - 1) - 1) if word[0] == "s" else (0, (1 << size) - 1)


def integer_to_integer(form: Form, to: str, source: str) -> Case:
    low, high = bounds(to)
    if "sat" in form.modifiers:
        return Case(form.name, (source,), to, lambda a: min(max(of_type(source, a), low), high))
    return Case(form.name, (source,), to, lambda a: of_type(source, a))


def real_to_integer(form: Form, to: str, source: str) -> Case:
    format_, (low, high) = FORMATS[source], bounds(to)
    mode = next(word for word in form.modifiers if word in WHOLE)

    def convert(a: int) -> int | None:
        number = format_.decode(a)
        number = whole(format_.flushed(number) if "ftz" in form.modifiers else number, mode)
        if number.is_nan:
            return None  # checked apart
        if number.infinite:
            return low if number.negative else high
        return min(max(int(number.value), low), high)

    return Case(form.name, (source,), to, convert)


def to_real(form: Form, to: str, source: str) -> Case:
    format_ = FORMATS[to]
    mode = next((word for word in form.modifiers if word in MODES), "rn")
    to_whole = next((word for word in form.modifiers if word in WHOLE), None)

    def given(a: int) -> Real:
        if source not in FORMATS:
            number = of_type(source, a)
            return Real(number < 0, Fraction(abs(number)))
        number = FORMATS[source].decode(a)
        return FORMATS["f32"].flushed(number) if "ftz" in form.modifiers and source == "f32" else number

    def convert(a: int) -> int:
        number = given(a)
        if to_whole:
            number = whole(number, to_whole)
        if "relu" in form.modifiers:
            number = rectified(number)
        if "satfinite" in form.modifiers and not number.is_nan:
            finite = number.size is not None and number.size <= format_.largest
            number = number if finite else Real(number.negative, format_.largest)
        result = format_.decode(format_.encode(number, mode))
        if "ftz" in form.modifiers and to == "f32":
            result = format_.flushed(result)
        return format_.encode(clamped(result) if "sat" in form.modifiers else result)

    return Case(form.name, (source,), to, convert)


def pair(form: Form, to: str) -> Case:
    """Two numbers of f32, the first of which becomes the higher one."""
    one = to_real(form, to.removesuffix("x2"), "f32")
    return Case(form.name, ("f32", "f32"), to, lambda a, b: (one.expected(a) or 0) << 16 | (one.expected(b) or 0))


def packed(form: Form) -> Case:
    """cvt.pack: two integers, saturated, below what the third holds."""
    to = form.modifiers[2]
    size, (low, high) = width(to), bounds(to)

    def pack(a: int, b: int, c: int = 0) -> int:
        parts = [min(max(of_type("s32", value), low), high) & ((1 << size) - 1) for value in (a, b)]
        return c << 2 * size | parts[0] << size | parts[1]

    return Case(form.name, ("s32",) * (form.operands - 1), "b32", pack)


def conversions() -> list[Case]:
    """All conversions that no other test looks at."""
    cases = []
    for form in running("cvt"):
        to, source = form.modifiers[-2:]
        if form.checked:
            continue
        if form.modifiers[0] == "pack":
            cases.append(packed(form))
        elif to.endswith("x2"):
            cases.append(pair(form, to))
        elif to in FORMATS:
            cases.append(to_real(form, to, source))
        elif source in FORMATS:
            cases.append(real_to_integer(form, to, source))
        else:
            cases.append(integer_to_integer(form, to, source))
    return cases
