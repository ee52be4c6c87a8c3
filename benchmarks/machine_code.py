"""Compares what ffm takes a GPU's instructions to do with what NVIDIA's disassembler shows.

    python benchmarks/machine_code.py LIBRARY --disassembler nvdisasm --every 24 --first 13

Which words of its parameters a kernel can use as addresses is read from its machine code, whose encoding is
undocumented (`ffm/instrument/native/watch/machine`). LIBRARY is a program or library of nvcc's, such as PyTorch's
`libtorch_cuda.so`; the disassembler comes with the package `nvidia-cuda-nvdisasm`. Of the machine code in every so many
of its containers, from the first one given on, some instructions of each form are compared:

- what they read of the bank with the parameters, unless they may read all of it;
- where branches, calls and places to meet lead to;
- that they overwrite no other registers than they name first;
- that a register by which memory is accessed, or which is stored, counts as used;
- that moves, choices, sums and operations on bits pass on their operands, and multiplications and shifts what they add
  to or shift.

An instruction that may read all parameters is not compared: any word of its kernel counts as an address. Nor is machine
code of more than `--largest` bytes. Prints how many were compared and how many were not, and each that differs; then
ends with 1.
"""

from __future__ import annotations

import argparse
import re
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import islice
from pathlib import Path

from common.building import PROGRAMS
from elftools.elf.elffile import ELFFile

import ffm.instrument
from ffm.driver.containers import CUBIN, SECTION, containers, entries

BYTES = 16
"""Of an instruction."""

ALIKE = 8
"""This many instructions of each form are compared."""

_LINE = re.compile(r"/\*([0-9a-f]{4,})\*/\s+(@!?U?P\w+\s+)?(.*?)\s*;\s*/\* 0x([0-9a-f]{16}) \*/")
_UPPER = re.compile(r"\s*/\* 0x([0-9a-f]{16}) \*/")
_NAMED = re.compile(r"`\((\.L_x_\w+)\)")
_LABEL = re.compile(r"(\.L_x_\w+):")
_REGISTER = re.compile(r"\bU?R\d+\b")
_PREDICATE = re.compile(r"!?U?P(\d|T|R)")
_DESTINATION = re.compile(r"U?R(\d+|Z)")
_IN_BANK = re.compile(r"c\[0x0\]\s?\[(U?R\d+\+)?(0x[0-9a-f]+)\]")

ACCESSES = {"LD", "LDG", "ST", "STG", "RED", "REDG", "ATOM", "ATOMG"}
STORES_OWN = {"STS", "STL"}
PASSES = {"MOV", "SEL", "FSEL", "IADD3", "LEA", "LOP3", "PRMT", "IMNMX", "VIMNMX", "VIADD", "UMOV", "USEL", "UIADD3"}
PASSES |= {"ULEA", "ULOP3", "UPRMT", "R2UR"}
MULTIPLIES, SHIFTS = {"IMAD", "UIMAD"}, {"SHF", "USHF"}
TURNED, LAST_BIT = {"0xf", "0x33", "0x55"}, "0x1f"
"""Tables of operations that turn all bits of one operand, and by how many places to shift all but the sign out."""


@dataclass(frozen=True, slots=True)
class Instruction:
    """What the disassembler shows of an instruction."""

    architecture: int
    words: tuple[int, int]
    offset: int
    section_bytes: int
    guarded: bool
    text: str
    target: int | None
    """Where its label is, if it names one in its section."""

    @property
    def name(self) -> str:
        """With its modifiers, such as IADD3.X."""
        return self.text.split()[0]

    @property
    def operands(self) -> list[str]:
        """Without predicates, of which carries are some."""
        operands = [operand.strip().removesuffix(".reuse") for operand in self.text[len(self.name) :].split(",")]
        return [operand for operand in operands if not _PREDICATE.fullmatch(operand)]


@dataclass(frozen=True, slots=True)
class Effect:
    """What ffm takes an instruction to do, as `programs/instructions.c` says."""

    reads_all: bool
    reads: range
    indexed: bool
    leads: tuple[int, int]
    overwritten: frozenset[str]
    used: frozenset[str]
    passed: frozenset[tuple[str, str]]


def machine_codes(library: Path, every: int, first: int, architectures: set[int]) -> Iterator[tuple[int, bytes]]:
    """Yield the architecture and the machine code of every n-th container, from the first one on."""
    with library.open("rb") as file:
        section = ELFFile(file).get_section_by_name(SECTION)
        if section is None:
            raise SystemExit(f"{library} has no section {SECTION}: give a program or library with CUDA kernels")
        data = section.data()
    for begin, end in islice(containers(data, 0, len(data)), first, None, every):
        for entry in entries(data, begin, end):
            if entry.kind == CUBIN and entry.architecture in architectures:
                yield entry.architecture, entry.code(data)


def instructions(disassembler: str, architecture: int, code: bytes, folder: Path) -> list[Instruction]:
    """Return the instructions that the disassembler shows."""
    file = folder / "code.cubin"
    file.write_bytes(code)
    shown = subprocess.run([disassembler, "-hex", str(file)], capture_output=True, text=True, check=True).stdout
    result: list[Instruction] = []
    for part in re.split(r"^\s*\.section", shown, flags=re.MULTILINE):
        result += _of_section(architecture, part.splitlines())
    return result


def _of_section(architecture: int, lines: list[str]) -> list[Instruction]:
    found: list[re.Match[str]] = []
    uppers: list[int] = []
    labels: dict[str, int] = {}
    for line in lines:
        if label := _LABEL.match(line):
            labels[label[1]] = BYTES * len(found)
        elif main := _LINE.search(line):
            found.append(main)
        elif (upper := _UPPER.match(line)) and len(uppers) < len(found):
            uppers.append(int(upper[1], 16))
    result = []
    for main, high in zip(found, uppers, strict=True):
        offset, guard, text, low = int(main[1], 16), main[2], main[3], int(main[4], 16)
        named = _NAMED.search(text)
        target = labels.get(named[1]) if named else None
        words, size = (low, high), BYTES * len(found)
        result.append(Instruction(architecture, words, offset, size, guard is not None, text, target))
    return result


def effects(program: Path, asked: list[Instruction]) -> list[Effect]:
    """Return what ffm takes each instruction to do."""
    lines = "".join(
        f"{one.architecture} {one.words[0]:x} {one.words[1]:x} {one.offset:x} {one.section_bytes:x}\n" for one in asked
    )
    answer = subprocess.run([program], input=lines, capture_output=True, text=True, check=True).stdout.splitlines()
    found = []
    for line in answer:
        reads_all, read, leads, overwritten, used, passed = line.split(";")
        begin, length, indexed = map(int, read.split())
        branch, meeting = map(int, leads.split())
        pairs = frozenset((one.split(">")[0], one.split(">")[1]) for one in passed.split())
        found.append(
            Effect(reads_all == "1", range(begin, begin + length), indexed == 1, (branch, meeting),
                   frozenset(overwritten.split()), frozenset(used.split()), pairs)
        )  # fmt: skip
    return found


def differences(one: Instruction, effect: Effect) -> Iterator[str]:
    """Yield in what an instruction differs from what the disassembler shows."""
    base, operands = one.name.split(".")[0], one.operands
    for index, place in _IN_BANK.findall(one.text):
        if int(place, 16) not in effect.reads or bool(index) != effect.indexed:
            yield f"reads {index}{place}"
    leads = effect.leads[base == "BSSY"]
    if one.target is not None and base in ("BRA", "CALL", "BSSY", "WARPSYNC") and one.target != leads:
        yield f"leads to {one.target:#x}, not {leads:#x}"
    first = next((place for place, operand in enumerate(operands) if _DESTINATION.fullmatch(operand)), None)
    if effect.overwritten and (one.guarded or not effect.overwritten <= _destinations(one, operands, first)):
        yield f"overwrites {sorted(effect.overwritten)}"
    for source in _sources(base, operands, first):
        known = source in effect.used or any(source == passed for passed, _ in effect.passed)
        if not known and source not in _destinations(one, operands, first):
            yield f"takes {source}"


def _destinations(one: Instruction, operands: list[str], first: int | None) -> set[str]:
    named = None if first is None else re.fullmatch(r"(U?R)(\d+)", operands[first])
    if named is None:
        return set()
    wide = re.search(r"\.(64|WIDE)\b", one.name) or one.name.startswith("D")
    width = 4 if ".128" in one.name else 2 if wide else 1
    return {f"{named[1]}{int(named[2]) + place}" for place in range(width)}


def _sources(base: str, operands: list[str], first: int | None) -> set[str]:
    """The registers that must count: not addresses in memory of a block or thread, and not descriptors of memory."""
    if base in STORES_OWN:
        return set(_REGISTER.findall(operands[-1]))
    behind = operands if base in ("ST", "STG", "RED", "REDG") or first is None else operands[first + 1 :]
    if base in ("LD", "LDG"):  # of 256 bits, they write two operands
        behind = [operand for operand in behind if "[" in operand]
    if base in ACCESSES:
        return set(_REGISTER.findall(re.sub(r"desc\[\w+\]", "", ",".join(behind))))
    if first is None or operands[first].endswith("Z"):  # nothing is passed on
        return set()
    if base in ("LOP3", "ULOP3") and operands[-1] in TURNED:
        return set()
    if base in SHIFTS and behind[1] == LAST_BIT:  # of what is shifted to the right, the sign is left
        return set(_REGISTER.findall(behind[0]))
    if base in PASSES:
        return set(_REGISTER.findall(",".join(behind)))
    if base in MULTIPLIES:
        return set(_REGISTER.findall(",".join(behind[2:3])))
    if base in SHIFTS:
        return set(_REGISTER.findall(",".join(behind[0:1] + behind[2:3])))
    return set()


def build(folder: Path) -> Path:
    """Compile `programs/instructions.c` with what enters programs."""
    native = next(Path(place) / "native" for place in ffm.instrument.__path__ if (Path(place) / "native").is_dir())
    room, program = native / "watch" / "machine", folder / "instructions"
    sources = [PROGRAMS / "instructions.c", room / "machine_flow.c", room / "machine_instruction.c"]
    subprocess.run(["gcc", "-std=c11", "-O2", f"-I{room}", "-o", program, *sources], check=True)
    return program


def some_of_each_form(shown: list[Instruction], met: Counter[tuple[int, str, bool, str]]) -> list[Instruction]:
    """Return those of whose form few have been met, and count all."""
    some = []
    for one in shown:
        form = one.architecture, one.name, one.guarded, re.sub(r"\d+", "", one.text)
        met[form] += 1
        if met[form] <= ALIKE:
            some.append(one)
    return some


def main() -> int:
    """Compare as the arguments say, and return the exit status."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("library", type=Path)
    parser.add_argument("--disassembler", default="nvdisasm")
    parser.add_argument("--every", type=int, default=24, help="compare every so many containers (default %(default)s)")
    parser.add_argument("--first", type=int, default=0, help="of these containers (default %(default)s)")
    parser.add_argument("--architectures", type=int, nargs="+", default=[75, 80, 86, 90, 100, 120])
    parser.add_argument("--largest", type=int, default=1 << 20, help="bytes of machine code (default %(default)s)")
    arguments = parser.parse_args()
    compared = differing = unread = left_out = 0
    met: Counter[tuple[int, str, bool, str]] = Counter()
    with tempfile.TemporaryDirectory(prefix="ffm-machine-code-") as scratch:
        folder = Path(scratch)
        program = build(folder)
        wanted = set(arguments.architectures)
        for architecture, code in machine_codes(arguments.library, arguments.every, arguments.first, wanted):
            if len(code) > arguments.largest:
                left_out += 1
                continue
            asked = some_of_each_form(instructions(arguments.disassembler, architecture, code, folder), met)
            for one, effect in zip(asked, effects(program, asked), strict=True):
                if effect.reads_all:
                    unread += 1
                    continue
                compared += 1
                for difference in differences(one, effect):
                    differing += 1
                    print(f"sm_{one.architecture} {one.words[0]:016x} {one.words[1]:016x} {one.text}: {difference}")
    print(f"{compared:,} instructions compared, {differing} differences; {unread:,} that may read all parameters")
    print(f"left out: {left_out} pieces of machine code larger than {arguments.largest:,} bytes")
    return 1 if differing or not compared else 0


if __name__ == "__main__":
    sys.exit(main())
