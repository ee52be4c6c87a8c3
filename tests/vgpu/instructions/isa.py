"""Reads `isa.toml`: the forms of all instructions, and code that holds one of each."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from itertools import product
from pathlib import Path

TABLE = Path(__file__).with_name("isa.toml")
WIDTHS = {"h": 16, "r": 32, "w": 64, "q": 128}
NUMBERED = 12
"""How many registers of a kind the code of one instruction may use."""
ADDRESSES = {
    "g": "%global",
    "s": "shared",
    "c": "constant",
    "l": "local",
    "k": "word",
    "t": "%texture",
    "u": "%surface",
    "b": "object",
}
SPACES = {"global": "g", "const": "c", "local": "l", "param": "k", "shared": "s"}
VARIABLES = ".const .align 16 .b8 constant[256];\n"
DECLARATIONS = f"""
    .reg .pred %p<{NUMBERED}>; .reg .b16 %h<{NUMBERED}>; .reg .b32 %r<40>; .reg .b64 %w<{NUMBERED}>;
    .reg .b128 %q<{NUMBERED}>; .reg .b64 %global, %texture, %surface;
    .shared .align 128 .b8 shared[256]; .shared .align 8 .b64 object; .local .align 16 .b8 local[256];
"""


@dataclass(frozen=True)
class Form:
    """One instruction with its types and modifiers."""

    name: str
    """As written, without operands."""
    code: str
    """A statement with registers and addresses of `DECLARATIONS`."""
    section: str
    target: str
    runs: bool
    checked: tuple[str, ...]
    """The tests that look at what it does; none: a case does."""

    @property
    def opcode(self) -> str:
        return self.name.split(".")[0]

    @property
    def modifiers(self) -> list[str]:
        """What stands behind the opcode, types among them."""
        return self.name.split(".")[1:]

    @property
    def operands(self) -> int:
        """How many it has, the result included; vectors count once."""
        return len(re.sub(r"\{[^}]*\}", "", self.code).split(","))


def expanded(pattern: str) -> Iterator[str]:
    """All texts that a pattern with (a|b|) stands for."""
    parts = re.split(r"\(([^()]*)\)", pattern)
    for chosen in product(*(part.split("|") if place % 2 else [part] for place, part in enumerate(parts))):
        yield "".join(chosen)


def code_of(text: str) -> str:
    """The statement of an expanded form: `add.u32 r, r, r` becomes `add.u32 %r1, %r2, %r3;`."""
    name, _, operands = text.partition(" ")
    counts = dict.fromkeys([*WIDTHS, "p"], 0)
    space = next((SPACES[word.split("::")[0]] for word in name.split(".") if word.split("::")[0] in SPACES), "g")

    def register(match: re.Match[str]) -> str:
        counts[match[0]] += 1
        return f"%{match[0]}{counts[match[0]]}"

    operands = re.sub(r"\[([gsclktub])\b", lambda match: f"[{ADDRESSES[match[1]]}", operands.replace("[$", f"[{space}"))
    operands = re.sub(r"(?<![\w.%])[hrwqp](?![\w:])", register, operands)
    return f"{name} {operands};".replace(" ;", ";")


@cache
def forms() -> list[Form]:
    """Every form of the table."""
    found = []
    for entry in tomllib.loads(TABLE.read_text())["instruction"]:
        checked = tuple(name.strip() for name in entry.get("checked", "").split(",") if name)
        for runs in (True, False):
            for pattern in entry.get("run" if runs else "refused", []):
                for text in expanded(pattern):
                    found.append(
                        Form(
                            text.split(" ")[0],
                            code_of(text),
                            entry["section"],
                            str(entry.get("target", "90a")),
                            runs,
                            checked,
                        )
                    )
    return found


def kernel_of(name: str, statements: list[str]) -> str:
    """A kernel with these statements; its parameters are a buffer, a texture and a surface."""
    lines = "\n    ".join(statements)
    return f"""
.visible .entry {name}(.param .b64 buffer, .param .b64 texture, .param .b64 surface, .param .align 16 .b8 word[16])
{{{DECLARATIONS}
    ld.param.b64 %global, [buffer]; ld.param.b64 %texture, [texture]; ld.param.b64 %surface, [surface];
    {lines}
    ret;
}}
"""


def running(*opcodes: str) -> list[Form]:
    """The forms of these opcodes that run."""
    return [form for form in forms() if form.runs and form.opcode in opcodes]
