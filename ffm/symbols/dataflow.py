"""What a function passes in a register at a call, traced back through its machine code (x86-64) to its origin.

Only straight-line code before the call is followed, where compilers put a call's arguments in place.
"""

from __future__ import annotations

from bisect import bisect_left
from dataclasses import dataclass

import capstone
from capstone import x86

ARGUMENTS = ("rdi", "rsi", "rdx", "rcx", "r8", "r9")
"""Registers of integer and pointer arguments (System V ABI)."""

KEPT = frozenset({"rbx", "rbp", "rsp", "r12", "r13", "r14", "r15"})
"""Registers that a call preserves."""

LONGEST = 64
"""Most instructions examined."""


@dataclass(frozen=True, slots=True)
class Held:
    """What a register holds when the instruction at an address starts."""

    register: str
    address: int


@dataclass(frozen=True, slots=True)
class Fixed:
    """A link-time address, such as that of a global variable."""

    address: int


@dataclass(frozen=True, slots=True)
class Plus:
    """Another value plus a constant."""

    value: Value
    offset: int


@dataclass(frozen=True, slots=True)
class Loaded:
    """The content of memory at an address."""

    address: Value


Value = Held | Fixed | Plus | Loaded


class Code:
    """The instructions of part of a function, from its start at a link-time address up to the end of a call."""

    def __init__(self, content: bytes, start: int) -> None:
        self.end = start
        self._instructions: list[capstone.CsInsn] = []
        self._jumps: list[tuple[int, int]] = []
        self._targets: set[int] = set()
        self.extend(content)

    def extend(self, content: bytes) -> None:
        """Decode the bytes that follow."""
        decoder = capstone.Cs(capstone.CS_ARCH_X86, capstone.CS_MODE_64)
        decoder.detail = True
        decoded = list(decoder.disasm(content, self.end))
        self.end += len(content)
        self._instructions += decoded
        self._jumps += [
            (instruction.address, instruction.operands[0].imm)
            for instruction in decoded
            if instruction.group(capstone.CS_GRP_JUMP) and instruction.operands[0].type == x86.X86_OP_IMM
        ]
        self._targets = {target for _, target in self._jumps}

    def until(self, end: int) -> Code:
        """Return the part before a link-time address."""
        part = Code(b"", end)
        part._instructions = self._instructions[: bisect_left(self._instructions, end, key=lambda one: one.address)]
        part._jumps = [jump for jump in self._jumps if jump[0] < end]
        part._targets = {target for _, target in part._jumps}
        return part

    def argument(self, place: int) -> Value | None:
        """Return the argument with an index from 0 that the last instruction, a call, receives; None if it is not a
        call.
        """
        if not self._instructions or not self._instructions[-1].group(capstone.CS_GRP_CALL):
            return None
        return self._value(ARGUMENTS[place], len(self._instructions) - 1)

    def step_back(self, held: Held) -> Value | None:
        """Return where a register's content comes from; None if that cannot be determined."""
        index = next((i for i, at in enumerate(self._instructions) if at.address == held.address), 0)
        found = self._value(held.register, index)
        return None if found == held or (isinstance(found, Held) and found.register == held.register) else found

    def _value(self, register: str, before: int) -> Value:
        for index in range(before - 1, max(before - 1 - LONGEST, -1), -1):
            instruction, following = self._instructions[index], self._instructions[index + 1]
            here = Held(register, following.address)
            if following.address in self._targets or instruction.mnemonic in ("jmp", "ret"):
                return here
            if instruction.group(capstone.CS_GRP_CALL):
                if register not in KEPT:
                    return here
                continue
            written = {self._whole(instruction, number) for number in instruction.regs_access()[1]}
            if register in written:
                return self._source(instruction) or here
        return Held(register, self._instructions[0].address)

    def _source(self, instruction: capstone.CsInsn) -> Value | None:
        """Return what an instruction puts into its destination; None unless it is a move or a sum with a constant."""
        if instruction.mnemonic == "add" and instruction.operands[1].type == x86.X86_OP_IMM:
            register = self._whole(instruction, instruction.operands[0].reg)
            return Plus(Held(register, instruction.address), instruction.operands[1].imm)
        if instruction.mnemonic not in ("mov", "lea", "movabs"):
            return None
        source = instruction.operands[1]
        if source.type == x86.X86_OP_REG:
            return Held(self._whole(instruction, source.reg), instruction.address)
        if source.type == x86.X86_OP_IMM:
            return Fixed(source.imm)
        address = self._address(instruction, source.mem)
        if address is None or instruction.mnemonic == "lea":
            return address
        return Loaded(address)

    def _address(self, instruction: capstone.CsInsn, memory: x86.X86OpMem) -> Value | None:
        if memory.index != 0 or memory.segment != 0:
            return None
        if memory.base == x86.X86_REG_RIP:
            return Fixed(instruction.address + instruction.size + memory.disp)
        if memory.base == 0:
            return Fixed(memory.disp)
        return Plus(Held(self._whole(instruction, memory.base), instruction.address), memory.disp)

    @staticmethod
    def _whole(instruction: capstone.CsInsn, number: int) -> str:
        """Return the 64-bit register that a register is part of: writing its lower half clears the rest."""
        name = str(instruction.reg_name(number))
        if name.startswith("e") and len(name) == 3 and name != "eip":
            return "r" + name[1:]
        return name[:-1] if name.startswith("r") and name.endswith("d") else name
