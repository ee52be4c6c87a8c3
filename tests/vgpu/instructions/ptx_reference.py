"""What instructions of PTX compute, exactly: integers as Python has them, floating-point numbers as fractions.

Everything works on bits, as registers hold them. What is computed is that of NVIDIA's "PTX ISA", sections
"Instructions: Integer Arithmetic", "Floating-Point", "Half Precision Floating-Point" and "Data Movement: cvt", and of
IEEE 754, section 4.3, for rounding.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from math import isqrt


def signed(bits: int, width: int) -> int:
    """The number that bits stand for in two's complement."""
    bits &= (1 << width) - 1
    return bits - (bits >> (width - 1) << width)


def of_type(word: str, bits: int) -> int:
    """The integer that bits stand for in a type such as `s32`."""
    width = int(word[1:])
    return signed(bits, width) if word[0] == "s" else bits & ((1 << width) - 1)


def truncated_quotient(a: int, b: int) -> int:
    """The quotient, rounded towards zero."""
    return abs(a) // abs(b) * (1 if (a < 0) == (b < 0) else -1)


@dataclass(frozen=True)
class Real:
    """A floating-point number: NaN, an infinity, or a sign and a magnitude, so that zeros have signs too."""

    negative: bool
    size: Fraction | None
    """None: not a number, or infinite."""
    infinite: bool = False

    @property
    def is_nan(self) -> bool:
        return self.size is None and not self.infinite

    @property
    def value(self) -> Fraction:
        assert self.size is not None
        return -self.size if self.negative else self.size

    @property
    def is_zero(self) -> bool:
        return self.size == 0

    def __neg__(self) -> Real:
        return Real(not self.negative, self.size, self.infinite)

    def __abs__(self) -> Real:
        return Real(False, self.size, self.infinite)


NAN = Real(False, None)


@dataclass(frozen=True)
class Format:
    """A binary format of IEEE 754's kind."""

    width: int
    precision: int
    """Bits of the significand, with the hidden one."""
    largest_exponent: int

    @property
    def fraction_bits(self) -> int:
        return self.precision - 1

    @property
    def smallest_normal(self) -> Fraction:
        return Fraction(2) ** (1 - self.largest_exponent)

    def decode(self, bits: int) -> Real:
        """The number that bits stand for."""
        negative = bool(bits >> (self.width - 1) & 1)
        exponent = bits >> self.fraction_bits & (2 * self.largest_exponent + 1)
        fraction = bits & ((1 << self.fraction_bits) - 1)
        if exponent == 2 * self.largest_exponent + 1:
            return Real(negative, None, infinite=not fraction)
        whole = fraction + ((1 << self.fraction_bits) if exponent else 0)
        return Real(negative, whole * Fraction(2) ** (max(exponent, 1) - self.largest_exponent - self.fraction_bits))

    def encode(self, number: Real, mode: str = "rn") -> int:
        """The bits of the number, rounded: `rn` to nearest even, `rz` to zero, `rm` down, `rp` up. All ones for NaN."""
        sign = int(number.negative) << (self.width - 1)
        infinity = (2 * self.largest_exponent + 1) << self.fraction_bits
        if number.is_nan:
            return (1 << (self.width - 1)) - 1
        if number.infinite:
            return sign | infinity
        assert number.size is not None
        step = self._step(number.size)
        whole = rounded(number.size / step, "rz" if (mode == "rp") == number.negative and mode in ("rp", "rm") else
                        "away" if mode in ("rp", "rm") else mode)  # fmt: skip
        size = whole * step
        if size > self.largest:
            overflows = mode == "rn" or (mode == "rp" and not number.negative) or (mode == "rm" and number.negative)
            return sign | (infinity if overflows else infinity - 1)
        return sign | self._code(size)

    @property
    def largest(self) -> Fraction:
        return (2 - Fraction(2) ** -self.fraction_bits) * Fraction(2) ** self.largest_exponent

    def _step(self, size: Fraction) -> Fraction:
        """The distance of neighbours around a magnitude."""
        exponent = 1 - self.largest_exponent
        if size >= self.smallest_normal:
            exponent = size.numerator.bit_length() - size.denominator.bit_length()
            exponent -= size < Fraction(2) ** exponent
        return Fraction(2) ** (exponent - self.fraction_bits)

    def _code(self, size: Fraction) -> int:
        step = self._step(size)
        whole = int(size / step)
        if size < self.smallest_normal:
            return whole
        exponent = step.numerator.bit_length() - step.denominator.bit_length() + self.fraction_bits
        return (exponent + self.largest_exponent << self.fraction_bits) + whole - (1 << self.fraction_bits)

    def flushed(self, number: Real) -> Real:
        """Zero with the number's sign, for numbers below the normal ones."""
        subnormal = number.size is not None and number.size < self.smallest_normal
        return Real(number.negative, Fraction(0)) if subnormal else number


FORMATS = {
    "f16": Format(16, 11, 15),
    "bf16": Format(16, 8, 127),
    "f32": Format(32, 24, 127),
    "f64": Format(64, 53, 1023),
}


def rounded(size: Fraction, mode: str) -> int:
    """A magnitude as a whole number."""
    below = size.numerator // size.denominator
    rest = size - below
    if mode == "away":
        return below + (rest > 0)
    if mode == "rz":
        return below
    return below + (rest > Fraction(1, 2) or (rest == Fraction(1, 2) and below % 2 == 1))


def whole(number: Real, mode: str) -> Real:
    """A finite number as the nearest whole one in a direction: `rni`, `rzi`, `rmi`, `rpi`."""
    if number.size is None:
        return number
    away = (mode == "rmi" and number.negative) or (mode == "rpi" and not number.negative)
    return Real(number.negative, Fraction(rounded(number.size, "rn" if mode == "rni" else "away" if away else "rz")))


def plus(a: Real, b: Real, mode: str = "rn") -> Real:
    """The exact sum; the mode decides the sign of zero."""
    if a.is_nan or b.is_nan or (a.infinite and b.infinite and a.negative != b.negative):
        return NAN
    if a.infinite or b.infinite:
        return a if a.infinite else b
    total = a.value + b.value
    if total == 0:
        same = a.negative == b.negative and a.is_zero
        return Real(a.negative if same else mode == "rm", Fraction(0))
    return Real(total < 0, abs(total))


def times(a: Real, b: Real) -> Real:
    """The exact product."""
    if a.is_nan or b.is_nan or (a.infinite and b.is_zero) or (b.infinite and a.is_zero):
        return NAN
    negative = a.negative != b.negative
    if a.infinite or b.infinite:
        return Real(negative, None, infinite=True)
    return Real(negative, abs(a.value * b.value))


def over(a: Real, b: Real) -> Real:
    """The exact quotient."""
    if a.is_nan or b.is_nan or (a.infinite and b.infinite) or (a.is_zero and b.is_zero):
        return NAN
    negative = a.negative != b.negative
    if a.infinite or b.is_zero:
        return Real(negative, None, infinite=True)
    if b.infinite:
        return Real(negative, Fraction(0))
    return Real(negative, abs(a.value / b.value))


def root(a: Real) -> Real:
    """The square root: exact where it is rational, else between the same two numbers of any format here."""
    if a.is_nan or a.is_zero:
        return a
    if a.negative:
        return NAN
    if a.infinite:
        return a
    scale = 1 << 2600  # leaves more than a thousand bits of the smallest root
    assert a.size is not None
    scaled = a.size * scale * scale
    below = isqrt(scaled.numerator // scaled.denominator)
    inexact = Fraction(below * below) != scaled
    return Real(False, Fraction(2 * below + inexact, 2 * scale))


def lesser(a: Real, b: Real) -> bool:
    """Whether a comes before b, where -0 comes before +0; neither is NaN."""
    if a.infinite or b.infinite:
        rank = [(-1 if x.negative else 1) if x.infinite else 0 for x in (a, b)]
        return rank[0] < rank[1]
    return a.value < b.value or (a.is_zero and b.is_zero and a.negative and not b.negative)


def extreme(name: str, a: Real, b: Real, *, nan: bool = False) -> Real:
    """min or max; NaN only where both are, or with `nan` where either is."""
    if a.is_nan or b.is_nan:
        return NAN if nan or (a.is_nan and b.is_nan) else b if a.is_nan else a
    first = lesser(a, b) if name == "min" else lesser(b, a)
    return a if first else b


def clamped(number: Real) -> Real:
    """What `.sat` makes of it: from +0 to 1, and +0 of NaN."""
    one = Real(False, Fraction(1))
    if number.is_nan or number.negative or number.is_zero:
        return Real(False, Fraction(0))
    return one if number.infinite or number.value > 1 else number


def rectified(number: Real) -> Real:
    """What `.relu` makes of it: +0 of negative numbers; NaN stays."""
    return number if number.is_nan or not number.negative else Real(False, Fraction(0))
