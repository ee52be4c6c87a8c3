"""Instructions of PTX, family by family and type by type, against exact values (`ptx_reference`), bit for bit.

Every case runs on edges of its types and on random bits. `test_isa.py` reads the cases from here.
"""

from __future__ import annotations

from collections.abc import Callable

import pytest

from tests.vgpu.instructions.case import INTEGERS, LONG, Case, inputs, same, width
from tests.vgpu.instructions.cases_atomic import atomics
from tests.vgpu.instructions.cases_bits import bits_of, joined_lookups, masks, of_predicates, words_of_32
from tests.vgpu.instructions.cases_comparison import comparisons
from tests.vgpu.instructions.cases_conversion import conversions
from tests.vgpu.instructions.cases_integer import arithmetic, carries, pairs, small_products
from tests.vgpu.instructions.cases_memory import accesses
from tests.vgpu.instructions.cases_real import numbers_of
from tests.vgpu.instructions.cases_video import video
from tests.vgpu.ptx import evaluate

pytestmark = pytest.mark.virtual_gpu
STEP = 2
"""Each case looks at every other row, so that forms that are alike look at different ones."""


FAMILIES: dict[str, Callable[[], list[Case]]] = {
    **{f"arithmetic of {word}": lambda word=word: arithmetic(word) for word in INTEGERS},
    "integers side by side": pairs,
    "small products": small_products,
    "carries": lambda: [case for word in LONG for case in carries(word)],
    **{f"bits of {word}": lambda word=word: bits_of(word) for word in ("b16", "b32", "b64")},
    "words of 32 bits": lambda: [*words_of_32(), *joined_lookups(), *of_predicates(), *masks()],
    **{word: lambda word=word: numbers_of(word) for word in ("f16", "f16x2", "bf16", "bf16x2", "f32", "f64")},
    **{f"comparisons by {name}": lambda name=name: comparisons(name) for name in ("set", "setp")},
    "selections": lambda: comparisons("selp", "slct", "testp", "copysign"),
    "atomics": atomics,
    "conversions": conversions,
    "video": video,
    **{f"accesses by {name}": lambda name=name: accesses(name) for name in ("ld", "ldu", "st")},
}


LONG_FAMILIES = ("video",)
"""Families whose code takes longest to compile."""


@pytest.mark.parametrize(
    "family", [pytest.param(name, marks=[pytest.mark.thorough] * (name in LONG_FAMILIES)) for name in FAMILIES]
)
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
        for number, (case, found) in enumerate(zip(cases, results, strict=True)):
            mask = (1 << width(case.result)) - 1
            tested = slice(number % STEP, None, STEP)
            for row, value in zip(rows[tested], found.tolist()[tested], strict=True):
                expected = case.expected(*row)
                if expected is not None and not same(case.result, value, expected & mask):
                    wrong.append(f"{case.form} of {[hex(x) for x in row]}: {value:#x}, not {expected & mask:#x}")
                    break
    assert wrong == []
