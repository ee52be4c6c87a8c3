"""How much memory an instruction touches, compared with a disassembler."""

from __future__ import annotations

import ctypes
import subprocess
from collections.abc import Iterator
from itertools import product
from pathlib import Path

import capstone
import pytest

from tests.native.layers import NATIVE

EXACT = """
mov (%rdi), %al
mov (%rdi), %ax
mov (%rdi), %eax
mov (%rdi), %rax
mov %rax, (%rdi)
mov %r9, 8(%r12,%r13,4)
movb $1, (%rdi)
movl $1, (%rdi)
movq $1, (%rdi)
movzbl (%rdi), %eax
movzwl (%rdi), %eax
movsbq (%rdi), %rax
movslq (%rdi), %rax
add %rax, (%rdi)
add (%rdi), %eax
addl $1, (%rdi)
cmpb $1, (%rdi)
test %al, (%rdi)
imul (%rdi), %rax
neg %rax
negq (%rdi)
incl (%rdi)
shll $3, (%rdi)
cmovne (%rdi), %eax
sete (%rdi)
lock xadd %rax, (%rdi)
lock cmpxchg %eax, (%rdi)
xchg %rax, (%rdi)
movnti %rax, (%rdi)
bt %rax, (%rdi)
popcnt (%rdi), %rax
movsb
movsl
movsq
rep stosq
lodsb
cmpsb
push %rax
flds (%rdi)
fldl (%rdi)
fldt (%rdi)
fstpt (%rdi)
fildll (%rdi)
fnstcw (%rdi)
movss (%rdi), %xmm1
movsd (%rdi), %xmm1
movsd %xmm1, (%rdi)
movups (%rdi), %xmm1
movdqu (%rdi), %xmm9
movdqa %xmm9, (%rdi)
movd (%rdi), %xmm1
movq (%rdi), %xmm1
movq %xmm1, (%rdi)
movlps (%rdi), %xmm1
movhpd %xmm1, (%rdi)
addss (%rdi), %xmm1
addsd (%rdi), %xmm1
mulpd (%rdi), %xmm1
cvtsi2sdl (%rdi), %xmm1
cvtsi2sdq (%rdi), %xmm1
cvtss2sd (%rdi), %xmm1
cvtps2pd (%rdi), %xmm1
cvtdq2pd (%rdi), %xmm1
cvttps2dq (%rdi), %xmm1
vcvttps2dq (%rdi), %ymm1
ucomisd (%rdi), %xmm1
comiss (%rdi), %xmm1
pxor (%rdi), %xmm1
vmovss (%rdi), %xmm1
vmovsd (%rdi), %xmm1
vmovups (%rdi), %xmm1
vmovups (%rdi), %ymm1
vmovdqu %ymm9, (%r9)
vmovdqu64 (%rdi), %zmm1
vmovdqu64 (%rdi), %ymm17
vmovdqu8 %ymm17, (%rdi)
vaddss (%rdi), %xmm1, %xmm2
vaddpd (%rdi), %ymm1, %ymm2
vaddpd (%rdi){1to8}, %zmm1, %zmm2
vaddps (%rdi){1to16}, %zmm1, %zmm2
vbroadcastss (%rdi), %ymm1
vbroadcastsd (%rdi), %ymm1
vpbroadcastb (%rdi), %ymm1
vpbroadcastd (%rdi), %ymm1
vpcmpeqb (%rdi), %ymm1, %ymm2
vmovq (%rdi), %xmm1
vmovd (%rdi), %xmm1
vfmadd231pd (%rdi), %ymm1, %ymm2
movbe (%rdi), %rax
lock cmpxchg8b (%rdi)
lock cmpxchg16b (%rdi)
ldmxcsr (%rdi)
stmxcsr (%rdi)
"""

AT_LEAST = """
pmovzxbw (%rdi), %xmm1
pinsrb $1, (%rdi), %xmm1
fxsave (%rdi)
call *(%rdi)
fnstenv (%rdi)
fnsave (%rdi)
vfmadd231sd (%rdi), %xmm1, %xmm2
vinsertf128 $1, (%rdi), %ymm1, %ymm2
vpgatherdd %ymm3, (%rdi,%ymm1), %ymm2
vcvtqq2pd (%rdi), %ymm1
vextracti128 $1, %ymm1, (%rdi)
andn (%rdi), %eax, %ebx
"""


@pytest.fixture(scope="module")
def decoder(tmp_path_factory: pytest.TempPathFactory) -> ctypes.CDLL:
    library = tmp_path_factory.mktemp("instruction") / "libinstruction.so"
    subprocess.run(
        [
            "gcc",
            "-std=c11",
            "-Wall",
            "-Wextra",
            "-Werror",
            "-shared",
            "-fPIC",
            "-o",
            library,
            NATIVE / "watch" / "instructions" / "instruction.c",
        ],
        check=True,
    )
    return ctypes.CDLL(str(library))


def assembled(text: str, folder: Path) -> list[capstone.CsInsn]:
    """Every instruction of the text, as the assembler encodes it."""
    subprocess.run(["as", "-o", folder / "code.o"], input=text, text=True, check=True)
    subprocess.run(["objcopy", "-O", "binary", "-j", ".text", folder / "code.o", folder / "code"], check=True)
    disassembler = capstone.Cs(capstone.CS_ARCH_X86, capstone.CS_MODE_64)
    disassembler.detail = True
    found = list(disassembler.disasm((folder / "code").read_bytes(), 0))
    assert len(found) == len(text.split("\n")) - 2
    return found


def touched(instruction: capstone.CsInsn) -> int:
    """Return the bytes of its widest memory operand; a push's is on the stack."""
    memory = [operand.size for operand in instruction.operands if operand.type == capstone.CS_OP_MEM]
    return max(memory, default=8 if instruction.mnemonic == "push" else 0)


def test_the_bytes_of_common_instructions_are_exact(decoder: ctypes.CDLL, tmp_path: Path) -> None:
    wrong = {
        f"{instruction.mnemonic} {instruction.op_str}": (found, touched(instruction))
        for instruction in assembled(EXACT, tmp_path)
        if touched(instruction) != (found := decoder.ffm_instruction_bytes(bytes(instruction.bytes) + bytes(20)))
        and touched(instruction) > 0
    }
    assert wrong == {}


def test_the_bytes_of_others_are_never_less(decoder: ctypes.CDLL, tmp_path: Path) -> None:
    for instruction in assembled(AT_LEAST, tmp_path):
        found = decoder.ffm_instruction_bytes(bytes(instruction.bytes) + bytes(20))
        assert found >= touched(instruction), f"{instruction.mnemonic} {instruction.op_str}"


LEGACY = (b"", b"\x66", b"\xf3", b"\xf2", b"\x48", b"\x66\x48", b"\xf3\x48", b"\xf2\x48", b"\xf0")
"""Prefixes: operands of 2 bytes, repetitions, REX.W, LOCK."""

MAPS = (b"", b"\x0f", b"\x0f\x38", b"\x0f\x3a")

PREFIXES = {0x26, 0x2E, 0x36, 0x3E, 0x64, 0x65, 0x66, 0x67, 0xF0, 0xF2, 0xF3, *range(0x40, 0x50)}
"""Not opcodes: behind REX they would take its effect away."""

SOURCES = (0xF, 0xA)
"""Of the second source in VEX and EVEX: none, or a register."""


def encodings() -> Iterator[bytes]:
    """Opcodes of all maps with (%rdi) as operand, with the prefixes that change what they mean; many are invalid."""
    rest = bytes([1, 0, 0, 0, 0])
    for prefix, opcodes, opcode, register in product(LEGACY, MAPS, range(256), range(8)):
        if opcodes or opcode not in PREFIXES:
            yield prefix + opcodes + bytes([opcode, register << 3 | 7]) + rest
    for opcodes, wide, length, prefix, opcode, source in product(
        (1, 2, 3), (0, 1), (0, 1), range(4), range(256), SOURCES
    ):
        yield bytes([0xC4, 0xE0 | opcodes, wide << 7 | source << 3 | length << 2 | prefix, opcode, 7]) + rest
    for opcodes, wide, length, one, prefix, opcode, source in product(
        (1, 2, 3, 5, 6), (0, 1), range(3), (0, 1), range(4), range(256), SOURCES
    ):
        third = length << 5 | one << 4 | 8
        yield bytes([0x62, 0xF0 | opcodes, wide << 7 | source << 3 | 4 | prefix, third, opcode, 7]) + rest


def is_trusted(instruction: capstone.CsInsn) -> bool:
    """Whether the instruction touches as many bytes as the disassembler says, which is mistaken about some."""
    repeated = {b"\xf2", b"\xf3"} & {bytes([byte]) for byte in instruction.bytes[:2]}
    logical = {"andps", "andnps", "orps", "xorps", "rcpps", "rsqrtps"}  # invalid with a repetition
    no_access = {"lea", "nop", "bndmk", "invlpg", "cldemote", "clwb"}
    return not (
        instruction.mnemonic in no_access
        or instruction.mnemonic.startswith(("prefetch", "clflush"))
        or (instruction.mnemonic in logical and repeated)
        or instruction.mnemonic == "comisd"  # 8 bytes, not 16
    )


def test_no_instruction_touches_more_than_is_said(decoder: ctypes.CDLL) -> None:
    disassembler = capstone.Cs(capstone.CS_ARCH_X86, capstone.CS_MODE_64)
    disassembler.detail = True
    known = (next(disassembler.disasm(code, 0), None) for code in encodings())
    too_few = {
        f"{instruction.mnemonic} {instruction.op_str} ({instruction.bytes.hex()})"
        for instruction in known
        if instruction is not None
        and is_trusted(instruction)
        and touched(instruction) > decoder.ffm_instruction_bytes(bytes(instruction.bytes) + bytes(20))
    }
    assert too_few == set()


WIDE = {
    "tileloadd (%rdi,%rsi), %tmm0": "c4e27b4b0437",
    "tilestored %tmm0, (%rdi,%rsi)": "c4e27a4b0437",
    "ldtilecfg (%rdi)": "c4e2784907",
    "movdir64b (%rdi), %rsi": "660f38f837",
    "aesenc256kl (%rdi), %xmm0": "f30f38de07",
}
"""Encoded by hand, as assemblers and disassemblers of some years ago do not know them. Each touches 48 or 64 bytes."""


@pytest.mark.parametrize("code", WIDE.values(), ids=WIDE.keys())
def test_instructions_of_a_cache_line_have_its_bytes(decoder: ctypes.CDLL, code: str) -> None:
    assert decoder.ffm_instruction_bytes(bytes.fromhex(code) + bytes(20)) == 64


ONE, COPY, COMPARE, MANY = range(4)  # ffm_places

PLACES = {
    ONE: """
mov (%rdi), %rax
rep stosq
lodsb
scasb
vmovups (%rdi), %zmm1
vpbroadcastd (%rdi), %ymm1
vpermd (%rdi), %ymm1, %ymm2
vpermilps $1, (%rdi), %ymm1
""",
    COPY: """
movsb
movsl
rep movsq
""",
    COMPARE: """
cmpsb
repe cmpsq
""",
    MANY: """
movsl %gs:(%rsi), (%rdi)
movsb (%esi), (%edi)
vpgatherdd %ymm3, (%rdi,%ymm1), %ymm2
vgatherqpd %xmm3, (%rdi,%xmm1,8), %xmm2
vpgatherqq (%rdi,%zmm1,8), %zmm2{%k1}
vpscatterdd %ymm2, (%rdi,%ymm1){%k1}
vscatterqpd %zmm2, (%rdi,%zmm1){%k1}
""",
}


@pytest.mark.parametrize("places", [ONE, COPY, COMPARE, MANY])
def test_instructions_with_several_places_are_known(decoder: ctypes.CDLL, tmp_path: Path, places: int) -> None:
    for instruction in assembled(PLACES[places], tmp_path):
        found = decoder.ffm_instruction_places(bytes(instruction.bytes) + bytes(20))
        assert found == places, f"{instruction.mnemonic} {instruction.op_str}"
