"""What an instruction says and the driver does not know is refused by name: nothing is skipped in silence."""

from __future__ import annotations

import random
import re
from collections import defaultdict

import pytest
from cuda.bindings import driver

from tests.vgpu.instructions.isa import VARIABLES, Form, forms, kernel_of
from tests.vgpu.ptx import HEAD, Program, Status, launched_apart, quick_gpu

INVENTED = ("invented", "rx", "f33", "v3", "shared::grid", "L3")
ELSEWHERE = 12
"""How many modifiers of other instructions each opcode is tried with."""
RUNNING = [form for form in forms() if form.runs]


def with_modifier(form: Form, word: str, place: int) -> str:
    """The form's code with one modifier more, after `place` others."""
    words = form.name.rstrip(";").split(".")
    words.insert(1 + place, word)
    operands = form.code.partition(" ")[2]
    return f"{'.'.join(words)} {operands}" if operands else f"{'.'.join(words)};"


def accepted(statements: dict[str, str]) -> list[str]:
    """The statements that are not refused, or not with words that match the pattern beside each."""
    text = VARIABLES + "".join(kernel_of(f"k{place}", [code]) for place, code in enumerate(statements))
    answers, lines = launched_apart(text, len(statements))
    told = dict(re.findall(r"kernel (k\d+) .*? is not implemented: (.*)", "\n".join(lines)))
    return [
        f"{code} {answer.name} {told.get(f'k{place}')}"
        for place, ((code, pattern), answer) in enumerate(zip(statements.items(), answers, strict=True))
        if answer != Status.CUDA_ERROR_NOT_SUPPORTED or not re.fullmatch(pattern, told.get(f"k{place}", ""))
    ]


def test_every_form_with_an_invented_modifier_is_refused() -> None:
    """Wherever it stands: the place and the word change from form to form."""
    chosen = random.Random(14)
    statements = {}
    for form in RUNNING:
        word = chosen.choice(INVENTED)
        statements[with_modifier(form, word, chosen.randint(0, len(form.modifiers)))] = re.escape(f".{word}")
    assert accepted(statements) == []


def test_modifiers_of_other_instructions_are_refused() -> None:
    known: dict[str, set[str]] = defaultdict(set)
    first: dict[str, Form] = {}
    for form in RUNNING:
        known[form.opcode].update(form.modifiers)
        first.setdefault(form.opcode, form)
    known["st"] |= {"param", "param::func"}  # of arguments, which no form stands alone with
    known["ld"].add("param::func")
    words = sorted(set().union(*known.values()))
    chosen = random.Random(15)
    statements = {}
    for opcode, form in first.items():
        for word in chosen.sample([word for word in words if word not in known[opcode]], ELSEWHERE):
            statements[with_modifier(form, word, len(form.modifiers))] = re.escape(f".{word}")
    assert accepted(statements) == []


@pytest.mark.parametrize("more", [1, 3])
def test_operands_that_no_form_has_are_refused(more: int) -> None:
    longest: dict[str, Form] = {}
    for form in RUNNING:
        if form.opcode not in longest or form.operands > longest[form.opcode].operands:
            longest[form.opcode] = form
    added = ", ".join(["%r39"] * more)
    codes = [f"{form.code.rstrip(';')}{',' if ' ' in form.code else ''} {added};" for form in longest.values()]
    statements = dict.fromkeys(codes, r"operand \d+")
    assert accepted(statements) == []


def test_directives_that_change_a_kernel_are_refused_and_advice_is_not() -> None:
    advice = '.entry k0() .maxnreg 64 .minnctapersm 2 .pragma "nounroll"; { ret; }\n'
    changed = ".entry k1() .reqntid 32 .reqnctapercluster 1 .blocksareclusters { ret; }\n"
    answers, told = launched_apart(advice + changed, 2)
    assert answers == [Status.CUDA_SUCCESS, Status.CUDA_ERROR_NOT_SUPPORTED]
    assert "'.blocksareclusters' is not implemented" in told[-1]


@pytest.mark.virtual_gpu
def test_registers_that_are_vectors_are_refused() -> None:
    """Else their parts would be one register."""
    with quick_gpu():
        vectors = HEAD + ".entry k() { .reg .v4 .f32 %v; mov.f32 %v.x, 0f3f800000; ret; }"
        assert driver.cuModuleLoadData(vectors.encode())[0] == Status.CUDA_ERROR_INVALID_PTX
        assert Program(".entry k() { .reg .f32 %v; mov.f32 %v, 0f3f800000; ret; }").launch("k", 1, 1) == 0
