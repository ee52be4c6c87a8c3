"""What a case of a value is, and the inputs that cases run on."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from tests.vgpu.instructions.ptx_reference import FORMATS

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
