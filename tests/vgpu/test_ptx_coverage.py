"""Which instructions of PTX the tests beside this one check, by family: every one that is translated, or a reason."""

from __future__ import annotations

import re
from collections import Counter
from pathlib import Path

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
}
"""What computes nothing, and why."""


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


def checks() -> Counter[str]:
    """Return how many different instructions of each opcode the tests run."""
    texts = "\n".join(path.read_text() for path in HERE.glob("test_ptx_*.py") if path != Path(__file__))
    texts = texts.replace("{count}", "2") + texts.replace("{count}", "4")  # as tests of lanes side by side write it
    named = set(re.findall(r"(?<![\w.%{])([a-z]\w*)((?:\.[\w:]+|\.?\{\w+\})*)(?=[\s;\"])", texts))
    return Counter(opcode for opcode, _ in named)


def test_every_instruction_is_checked() -> None:
    counts = checks()
    missing = []
    print(f"\n{'family':12} {'opcodes':>7} {'checked':>7} {'forms':>6}  not checked")
    for family, opcodes in families().items():
        absent = [opcode for opcode in opcodes if not counts[opcode]]
        forms = sum(counts[opcode] for opcode in opcodes)
        print(f"{family:12} {len(opcodes):7} {len(opcodes) - len(absent):7} {forms:6}  {', '.join(absent)}")
        missing += [opcode for opcode in absent if opcode not in UNCHECKED]
    assert missing == []
