"""Loads and stores (PTX ISA, 9.7.9.8 to 9.7.9.11): every form of the table moves the bits that it names."""

from __future__ import annotations

import re

from tests.vgpu.instructions.case import POINTS, Case
from tests.vgpu.instructions.isa import Form, running
from tests.vgpu.instructions.ptx_reference import of_type

FACTOR = 0x9E3779B97F4A7C15
"""What tells lanes apart: each is the value times an odd number, and counts once more than the one before it."""
TABLE = bytes(7 * place + 131 & 255 for place in range(32))
"""What constant memory holds."""
WORDS = {"const": "const", "global": "global", "local": "local", "param": "param"}


class Access:
    """What a form moves: lanes of a type, and where."""

    def __init__(self, form: Form, number: int) -> None:
        self.form, self.number = form, number
        self.word = form.modifiers[-1]
        self.bits = int(self.word.lstrip("bfsu"))
        self.lanes = next((int(word[1:]) for word in form.modifiers if re.fullmatch(r"v[248]", word)), 1)
        self.space = next((word.partition("::")[0] for word in form.modifiers
                           if word.partition("::")[0] in (*WORDS, "shared")), "")  # fmt: skip
        self.address = "%w1" if self.space != "param" else "pieces_0"
        self.policy = ", %w6" if "L2::cache_hint" in form.modifiers else ""

    @property
    def place(self) -> str:
        """Code that declares memory, if the space needs it, and sets %w1 to where this element's lanes lie."""
        name = f"place{self.number}"
        if self.space == "const":
            return f".const .align 32 .b8 {name}[32] = {{{', '.join(map(str, TABLE))}}}; mov.u64 %w1, {name};"
        if self.space in ("local", "shared"):
            return f".{self.space} .align 32 .b8 {name}[32]; mov.u64 %w1, {name};"
        if self.space == "param":
            return ""
        return f".global .align 32 .b8 {name}[{32 * POINTS}]; mov.u64 %w1, {name}; mad.wide.u32 %w1, %r0, 32, %w1;"

    @property
    def registers(self) -> list[str]:
        return [f"%v{lane}" for lane in range(self.lanes)]

    @property
    def listed(self) -> str:
        return f"{{{', '.join(self.registers)}}}" if self.lanes > 1 else self.registers[0]

    @property
    def size(self) -> int:
        """Bits of the registers."""
        return max(self.bits, 16)

    def values(self, x: int) -> list[int]:
        """What the lanes hold as bits in memory."""
        if self.space == "const":
            size = self.bits // 8
            return [int.from_bytes(TABLE[size * lane : size * (lane + 1)], "little") for lane in range(self.lanes)]
        made = [x * (FACTOR * lane + 1) & (1 << 64) - 1 for lane in range(self.lanes)]
        return [value & (1 << min(self.bits, 64)) - 1 for value in made]

    def expected(self, x: int) -> int:
        """The sum of the lanes as they are loaded into registers of 64 bits, each times its number."""
        if self.space == "param":
            return 0
        total = 0
        for lane, bits in enumerate(self.values(x)):
            value = of_type(f"s{self.bits}", bits) if self.word[0] == "s" else bits
            total += bits + (bits ^ FACTOR) if self.bits == 128 else value * (lane + 1)
        return total

    def made(self) -> str:
        """Code for the lanes' values in %m0 and so on, as they lie in memory."""
        code = [f"mul.lo.u64 %m{lane}, %x, {FACTOR * lane + 1 & (1 << 64) - 1};" for lane in range(self.lanes)]
        return "".join(code)

    def plain(self, how: str) -> str:
        """Code that stores the lanes from %m0 and so on, or loads them into these, by ordinary instructions."""
        space = f".{self.space}" if self.space else ".global"
        step, size = self.bits // 8, min(self.bits, 64)
        code = []
        for lane in range(self.lanes):
            register, extended = f"%m{lane}", "" if how == "st" else f"cvt.u64.u{size} %m{lane}, %k{size};"
            if size != 64:
                register = f"%k{size}"
                code.append(f"cvt.u{size}.u64 %k{size}, %m{lane};" if how == "st" else "")
            else:
                extended = ""
            at = f"[%w1+{step * lane}]"
            code.append(
                f"st{space}.b{size} {at}, {register};"
                if how == "st"
                else f"ld{space}.b{size} {register}, {at};{extended}"
            )
        return "".join(code)

    def summed(self) -> str:
        """Code that adds the lanes up."""
        return "mov.u64 %o, 0;" + "".join(f"mad.lo.u64 %o, %m{lane}, {lane + 1}, %o;" for lane in range(self.lanes))

    def widened(self) -> str:
        """Code from the lanes' registers to %m0 and so on, with their signs."""
        if self.bits == 128:
            return "mov.b128 {%m0, %m1}, %v0; add.u64 %m0, %m0, %m1;"
        kind = "s" if self.word[0] == "s" else "u"
        if self.size == 64:
            return "".join(f"mov.b64 %m{lane}, %v{lane};" for lane in range(self.lanes))
        return "".join(f"cvt.{kind}64.{kind}{self.size} %m{lane}, %v{lane};" for lane in range(self.lanes))

    def narrowed(self) -> str:
        """The opposite."""
        if self.bits == 128:
            return f"xor.b64 %m1, %m0, {FACTOR}; mov.b128 %v0, {{%m0, %m1}};"
        if self.size == 64:
            return "".join(f"mov.b64 %v{lane}, %m{lane};" for lane in range(self.lanes))
        return "".join(f"cvt.u{self.size}.u64 %v{lane}, %m{lane};" for lane in range(self.lanes))

    @property
    def start(self) -> str:
        registers = f".reg .b64 %m<9>; .reg .b16 %k8, %k16; .reg .b32 %k32; .reg .b{self.size} %v<9>;"
        return f"{{ {registers} mov.u64 %w6, 0; {self.place}"


def load(form: Form, number: int) -> Case:
    access = Access(form, number)
    taken = f"{form.name} {access.listed}, [{access.address}]{access.policy}; {access.widened()}"
    if access.space == "param":  # the kernel's first parameter, which is an address that no case knows
        kind = "s" if access.word[0] == "s" else "u"
        same = f"cvt.{kind}64.{kind}{access.bits} %m1, %a0;" if access.bits < 64 else "mov.u64 %m1, %a0;"
        code = f"{access.start} {taken} {same} xor.b64 %o, %m0, %m1; }}"
    else:
        before = (
            ""
            if access.space == "const"
            else access.made() + (_pair_store(access.space) if access.bits == 128 else access.plain("st"))
        )
        code = f"{access.start} {before} {taken} {access.summed()} }}"
    return Case(form.name, ("b64",), "b64", access.expected, code)


def store(form: Form, number: int) -> Case:
    access = Access(form, number)
    put = f"{form.name} [{access.address}], {access.listed}{access.policy};"
    after = _pair_load(access.space) if access.bits == 128 else access.plain("ld")
    code = f"{access.start} {access.made()} {access.narrowed()} {put} {after} {access.summed()} }}"
    wanted = Access(form, number)
    if wanted.word[0] == "s":
        wanted.word = f"u{wanted.bits}"  # it comes back without its sign
    return Case(form.name, ("b64",), "b64", wanted.expected, code)


def _pair_store(space: str) -> str:
    return f"xor.b64 %m1, %m0, {FACTOR}; st.{space}.b64 [%w1], %m0; st.{space}.b64 [%w1+8], %m1;"


def _pair_load(space: str) -> str:
    return f"ld.{space}.b64 %m0, [%w1]; ld.{space}.b64 %m1, [%w1+8]; add.u64 %m0, %m0, %m1;"


def accesses(*opcodes: str) -> list[Case]:
    """All forms of these opcodes."""
    return [(store if form.opcode == "st" else load)(form, number) for number, form in enumerate(running(*opcodes))]
