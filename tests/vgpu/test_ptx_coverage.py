"""Which instructions of PTX the tests beside this one check by value, of which types, and where.

`pytest -s` prints the table.
"""

from __future__ import annotations

import ast
import re
from collections import defaultdict
from pathlib import Path

from test_ptx_conformance import FAMILIES, Case

HERE = Path(__file__).parent
TRANSLATION = HERE.parents[1] / "ffm" / "vgpu" / "driver" / "ptx" / "translation"
UNCHECKED = {
    "applypriority": "a hint to caches",
    "createpolicy": "a hint to caches",
    "discard": "a hint to caches",
    "prefetch": "a hint to caches",
    "prefetchu": "a hint to caches",
    "griddepcontrol": "nothing to wait for: a kernel starts when those before it are done",
    "brkpt": "stops as trap does, without a debugger",
    "pmevent": "counts events for a profiler",
    "setmaxnreg": "a hint about registers",
    "nanosleep": "yields no value",
    "trap": "ends the launch (test_ptx_programs::test_a_kernel_that_faults_ends_and_the_process_lives_on)",
}
"""What computes nothing, and why."""

WHOLE = ("u16", "s16", "u32", "s32", "u64", "s64")
NUMBERS = ("f16", "f16x2", "bf16", "bf16x2", "f32", "f64")
BITS = ("b16", "b32", "b64")
LONG = ("u32", "s32", "u64", "s64")
TYPES: dict[str, tuple[str, ...]] = {
    **dict.fromkeys(["add", "sub", "mul", "min", "max"], WHOLE + NUMBERS),
    **dict.fromkeys(["abs", "neg"], ("s16", "s32", "s64", *NUMBERS)),
    **dict.fromkeys(["mad", "sad", "rem"], WHOLE),
    "div": (*WHOLE, "f32", "f64"),
    "fma": NUMBERS,
    **dict.fromkeys(["sqrt", "rcp"], ("f32", "f64")),
    **dict.fromkeys(["and", "or", "xor", "not", "cnot", "shl"], BITS),
    "shr": WHOLE,
    **dict.fromkeys(["popc", "clz", "brev", "bfi"], BITS[1:]),
    **dict.fromkeys(["bfe", "bfind"], LONG),
    **dict.fromkeys(["addc", "subc", "madc"], LONG),
    **dict.fromkeys(["lop3", "prmt", "shf"], ("b32",)),
    **dict.fromkeys(["mul24", "mad24", "dp4a", "dp2a"], ("u32", "s32")),
    "atom": (*LONG, *BITS, *NUMBERS),
    "red": (*LONG, *BITS[1:], *NUMBERS),
    "setp": (*WHOLE, "f16", "bf16", "f32", "f64"),
    "set": WHOLE,
    "selp": (*WHOLE, "f32", "f64"),
    "testp": ("f32", "f64"),
    "copysign": ("f32", "f64"),
    "cvt": ("u8", "s8", *WHOLE, "f16", "bf16", "f32", "f64"),
}
"""The types that the ISA names for what `test_ptx_conformance.py` runs: each needs a case."""


def families() -> dict[str, list[str]]:
    """Return the opcodes that are translated, by the source that does it."""
    found: dict[str, list[str]] = {}
    for source in sorted(TRANSLATION.glob("*.cpp")):
        text = source.read_text()
        names = re.findall(r'handlers\["(\w+)"\]', text)
        for listed, body in re.findall(r"for \(const char \*name : \{([^}]*)\}\)(.*?);", text, re.DOTALL):
            endings = re.findall(r'\{"(2)", "(4)"\}', body) or [("",)]
            if "handlers[" in body or "count" in body:
                names += [name + end for name in re.findall(r'"(\w+)"', listed) for end in endings[0]]
        if names:
            found[source.stem] = sorted(set(names))
    return found


def conformance() -> dict[str, list[Case]]:
    """Return the cases that exact values are compared for, by opcode."""
    found: dict[str, list[Case]] = defaultdict(list)
    for cases in FAMILIES.values():
        for case in cases():
            found[case.opcode].append(case)
    return found


def types_of(cases: list[Case]) -> set[str]:
    """Return the last type of each form; of conversions, both."""
    words = [case.form.split(".") for case in cases]
    return {word for form in words for word in (form[-2:] if form[0] == "cvt" else form[-1:])}


def other_tests() -> dict[str, list[str]]:
    """Return the tests in whose own text an opcode stands, by opcode; `{count}` stands for lanes side by side."""
    found: dict[str, list[str]] = defaultdict(list)
    for path in sorted(HERE.glob("test_ptx_*.py")):
        if path.stem in (Path(__file__).stem, "test_ptx_conformance"):
            continue
        source = path.read_text()
        for node in ast.parse(source).body:
            if not isinstance(node, ast.FunctionDef) or not node.name.startswith("test_"):
                continue
            text = ast.get_source_segment(source, node) or ""
            text += "".join(ast.get_source_segment(source, each) or "" for each in node.decorator_list)
            text = text.replace("{count}", "2") + text.replace("{count}", "4")
            for opcode in set(re.findall(r"(?<![\w.%{])([a-z]\w*)(?=(?:\.[\w:]+|\.?\{\w+\})*[\s;\"])", text)):
                found[opcode].append(f"{path.stem}::{node.name}")
    return found


def test_every_instruction_is_checked_by_value() -> None:
    exact, others = conformance(), other_tests()
    missing = []
    print(f"\n{'family':12} {'opcode':12} {'forms':>5}  types compared exactly, or the test that compares values")
    for family, opcodes in families().items():
        for opcode in opcodes:
            types = sorted(types_of(exact[opcode])) if opcode in exact else []
            where = " ".join(types) or ", ".join(others[opcode]) or UNCHECKED.get(opcode, "-")
            print(f"{family:12} {opcode:12} {len(exact.get(opcode, [])):5}  {where}")
            if not types and not others[opcode] and opcode not in UNCHECKED:
                missing.append(opcode)
    assert missing == []


def test_every_type_has_a_case() -> None:
    exact = conformance()
    absent = {opcode: sorted(set(types) - types_of(exact[opcode])) for opcode, types in TYPES.items()}
    assert {opcode: types for opcode, types in absent.items() if types} == {}
    assert sorted(set(exact) - set(TYPES)) == ["slct"]
