"""Atomic operations (PTX ISA, 9.7.13)."""

from __future__ import annotations

from collections.abc import Callable
from itertools import product

from tests.vgpu.instructions.case import LONG, Case, width
from tests.vgpu.instructions.cases_real import real
from tests.vgpu.instructions.ptx_reference import FORMATS, of_type


def atomics() -> list[Case]:
    """atom and red in both spaces, what is there before and after."""
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
        after.append(("add" if word in ("f32", "f64") else "add.noftz", word, real(f"add.rn.{word}", 2).expected))
    cases: list[Case] = []
    for number, (space, (name, word, compute)) in enumerate(product(("global", "shared"), after)):
        size = width(word)
        address = f"mad.wide.u32 %w1, %r0, {size // 8}, %a1;" if space == "global" else f"mov.u64 %w1, slot{number};"
        declared = "" if space == "global" else f".shared .align 8 .b64 slot{number};"
        given = "%x, %y" if name == "cas" else "%y"
        start = f"{declared} {address} st.{space}.b{size} [%w1], %x; atom.{space}.{name}.{word}"
        end = f"ld.{space}.b{size} %o, [%w1]; st.{space}.b{size} [%w1], %x; }}"
        form = f"atom.{space}.{name}.{word}"

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
            cases.append(Case(form.replace("atom", "red"), (word, word), word, changed, text))
    return cases
