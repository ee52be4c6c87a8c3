"""Which words of their parameters kernels can use as addresses, from their machine code."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from tests.native.cubins import EXIT, FIRST_PARAMETER, calculate, load, store
from tests.native.layers import NATIVE, includes_of

MAIN = """
#include <stdio.h>
#include <stdlib.h>
#include "parameter_flow.h"
int main(int argc, char **argv)
{
    static uint64_t code[2048];
    for (int i = 4; i < argc; i++)
        code[i - 4] = strtoull(argv[i], NULL, 0);
    const bool used =
        ffm_may_be_address(atoi(argv[1]), (uint8_t *)code, 8 * (argc - 4), atoi(argv[2]), atoi(argv[3]) != 0);
    puts(used ? "used" : "not used");
}
"""
UPPER = FIRST_PARAMETER + 12
"""Where the upper half lies of the word that is asked about."""

WORD = load(FIRST_PARAMETER + 8, 8, to=6)
"""To R6 and R7."""

ADD, LOGIC, MOVE, SELECT, COMPARE, LEAST = 0x010, 0x012, 0x002, 0x007, 0x00C, 0x017
MULTIPLY_ADD, MULTIPLY_WIDE, MULTIPLY_HIGH, SHIFT, FLOAT_MULTIPLY = 0x024, 0x025, 0x027, 0x019, 0x020
ALWAYS, IF_P0 = 0x7000, 0x0000
TURING, HOPPER, BLACKWELL = 75, 90, 120

Code = list[tuple[int, int]]


def by_immediate(operation: int, to: int, a: int, number: int, c: int) -> tuple[int, int]:
    """Arithmetic with a number as its second operand."""
    return ALWAYS | 4 << 9 | operation | to << 16 | a << 24 | number << 32, c


def branch(instructions: int, guard: int = ALWAYS) -> tuple[int, int]:
    """Go so many instructions on from the next one; backward if negative."""
    distance = 16 * instructions
    word = 0x947 | guard | (distance // 4 & 0xFF) << 16 | (distance >> 8 << 32 & 0xFFFFFFFF00000000)
    return word, 0x000FEA0003800000 | (0x3FFFF if distance < 0 else 0)


@pytest.fixture(scope="module")
def flow(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("flow")
    (folder / "main.c").write_text(MAIN)
    sources = map(str, (NATIVE / "watch" / "machine").glob("*.c"))
    subprocess.run(
        ["gcc", "-std=c11", "-D_GNU_SOURCE", "-O1", "-g", "-fsanitize=address,undefined", "-fno-sanitize-recover=all",
         *includes_of("watch/machine"), "-o", str(folder / "flow"), str(folder / "main.c"), *sources],
        check=True,
    )  # fmt: skip
    return folder / "flow"


def used(flow: Path, code: Code, architecture: int = HOPPER, *, asserts: bool = False) -> bool:
    words = [hex(word) for instruction in code for word in instruction]
    command = [flow, str(architecture), str(UPPER), str(int(asserts)), *words]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    return {"used\n": True, "not used\n": False}[done.stdout]


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        ([], False),
        ([store(6, 4)], True),  # the address
        ([store(2, 7)], True),  # what is stored
        ([store(2, 6)], False),  # the lower half alone
        ([calculate(ADD, 11, 7, 255, 255), store(10, 4)], True),
        ([calculate(LOGIC, 11, 255, 7, 255), store(10, 4)], True),
        ([calculate(MOVE, 11, 255, 7, 255), store(10, 4)], True),
        ([calculate(SELECT, 11, 255, 7, 255), store(10, 4)], True),
        ([calculate(MULTIPLY_ADD, 11, 4, 5, 7), store(10, 4)], True),  # added to a product
        ([calculate(MULTIPLY_WIDE, 10, 4, 5, 6), store(10, 4)], True),  # as the pair that is added to it
        ([calculate(MULTIPLY_ADD, 11, 7, 5, 255), store(10, 4)], False),  # a factor
        ([calculate(MULTIPLY_ADD, 11, 5, 7, 255), store(10, 4)], False),
        ([calculate(MULTIPLY_HIGH, 11, 5, 7, 255), store(10, 4)], False),
        ([by_immediate(MULTIPLY_ADD, 11, 7, 1, 255), store(10, 4)], True),  # how compilers also move and add
        ([by_immediate(MULTIPLY_ADD, 11, 7, 1 << 16, 255), store(10, 4)], True),  # and shift
        ([by_immediate(MULTIPLY_ADD, 11, 7, 3, 255), store(10, 4)], False),
        ([by_immediate(MULTIPLY_WIDE, 10, 7, 16, 255), store(10, 4)], False),
        ([calculate(SHIFT, 11, 7, 4, 255), store(10, 4)], True),
        ([calculate(SHIFT, 11, 4, 7, 255), store(10, 4)], False),  # the number of places
        ([calculate(FLOAT_MULTIPLY, 11, 7, 7, 255), store(10, 11)], False),
        ([calculate(COMPARE, 0, 7, 7, 255), store(10, 4)], False),
        ([calculate(ADD, 7, 4, 5, 255), store(6, 4)], False),  # overwritten before
    ],
)
def test_an_address_is_a_base_and_an_offset(flow: Path, body: Code, expected: bool) -> None:
    assert used(flow, [WORD, *body, EXIT]) is expected


@pytest.mark.parametrize(
    ("width", "register", "expected"),
    [(4, 6, True), (8, 7, True), (8, 6, False)],  # the word may be any, the upper half of one is in an odd place
)
def test_with_an_index_a_load_is_of_any_word(flow: Path, width: int, register: int, expected: bool) -> None:
    indexed = load(FIRST_PARAMETER + 64, width, index=3, to=6)
    assert used(flow, [indexed, store(2, register), EXIT]) is expected
    assert not used(flow, [indexed, calculate(MULTIPLY_ADD, 11, register, 5, 255), store(2, 11), EXIT])
    assert not used(flow, [load(FIRST_PARAMETER + 64, width, index=3, bank=4, to=6), store(2, register), EXIT])


def test_uniform_loads_have_indexes_of_their_own(flow: Path) -> None:
    indexed = 0x00010C00040A7ABB, 0x000FE20008000A00  # nvdisasm: ULDC.64 UR10, c[0x0][UR4+0x430]
    from_uniform = 0x7C02 | 6 << 16 | 11 << 32, 0x000FE20008000F00  # nvdisasm: MOV R6, UR11
    assert used(flow, [indexed, from_uniform, store(2, 6), EXIT])
    assert not used(flow, [indexed, (from_uniform[0] - (1 << 32), from_uniform[1]), store(2, 6), EXIT])


def test_predicates_are_no_addresses(flow: Path) -> None:
    # nvdisasm: P2R R8, PR, RZ, 0x8 and R2P PR, R7, 0x8
    assert not used(flow, [WORD, (0x00000008FF087803, 0), store(2, 8), EXIT])
    assert used(flow, [WORD, (0x0000000807087803, 0), store(2, 8), EXIT])
    assert not used(flow, [WORD, (0x0000000807007804, 0), EXIT])


def test_a_product_of_halves_is_no_address(flow: Path) -> None:
    halves = calculate(0x035, 11, 7, 7, 255)  # IADD.64 on Blackwell, HFMA2.MMA before
    assert not used(flow, [WORD, halves, store(2, 11), EXIT])
    assert used(flow, [WORD, halves, store(2, 11), EXIT], BLACKWELL)


def by_table(table: int, a: int, b: int, c: int) -> tuple[int, int]:
    """LOP3.LUT to R11."""
    word, more = calculate(LOGIC, 11, a, b, c)
    return word, more | table << 8


@pytest.mark.parametrize(
    ("instruction", "expected"),
    [
        (by_table(0x33, 255, 7, 255), False),  # LOP3.LUT R11, RZ, R7, RZ, 0x33: all bits are turned
        (by_table(0x0F, 7, 255, 255), False),
        (by_table(0x55, 255, 255, 7), False),
        (by_table(0xCC, 255, 7, 255), True),
        (by_table(0x30, 4, 7, 255), True),  # the bits of R4 that R7 has not
        ((0x0000001FFF0B7819, 0x0000011407), False),  # SHF.R.S32.HI R11, RZ, 0x1f, R7: the sign
        ((0x0000001FFF0B7819, 0x0000011607), False),
        ((0x0000001EFF0B7819, 0x0000011607), True),
        ((0x0000001F070B7819, 0x0000011607), True),  # with another operand of which more may remain
        ((0x0000001FFF0B7819, 0x0000010607), True),  # SHF.L
    ],
)
def test_of_a_turned_word_and_of_a_sign_no_address_remains(
    flow: Path, instruction: tuple[int, int], expected: bool
) -> None:
    assert used(flow, [WORD, instruction, store(10, 4), EXIT]) is expected


def test_operations_on_predicates_name_no_registers(flow: Path) -> None:
    # nvdisasm: PLOP3.LUT P0, PT, PT, PT, UP0, 0x80, 0x0
    assert not used(flow, [load(FIRST_PARAMETER + 8, 8, to=0), (0x000000000000781C, 0x000FE20003F0F008), EXIT])


def test_what_is_overwritten_under_a_condition_may_remain(flow: Path) -> None:
    word, more = calculate(ADD, 7, 4, 5, 255)
    assert used(flow, [WORD, (word & ~ALWAYS | IF_P0, more), store(6, 4), EXIT])


def test_all_ways_through_the_code_count(flow: Path) -> None:
    overwrite = calculate(ADD, 7, 4, 5, 255)
    assert used(flow, [WORD, branch(1, IF_P0), overwrite, store(6, 4), EXIT])
    assert not used(flow, [WORD, branch(1), store(6, 4), EXIT])
    assert used(flow, [WORD, branch(1), EXIT, store(6, 4), EXIT])
    # The second turn of a loop stores to what the first one loads.
    assert used(flow, [store(6, 4), WORD, branch(-3, IF_P0), EXIT])
    assert not used(flow, [store(6, 4), WORD, overwrite, branch(-4, IF_P0), EXIT])


@pytest.mark.parametrize("operation", [LEAST, MOVE, SELECT])
def test_from_blackwell_on_arithmetic_may_be_of_pairs(flow: Path, operation: int) -> None:
    of_pair = [WORD, calculate(operation, 10, 6, 6, 255), store(10, 4), EXIT]
    assert used(flow, of_pair, BLACKWELL)
    assert not used(flow, of_pair)
    # But one that may be of a single register leaves the one behind it as it was.
    assert used(flow, [WORD, calculate(operation, 6, 2, 2, 255), store(6, 4), EXIT], BLACKWELL)


def test_numbers_of_uniform_registers_have_six_bits_before_blackwell(flow: Path) -> None:
    to_pair_4 = 0x7AB9 | 4 << 16 | (FIRST_PARAMETER + 8) << 38, 5 << 9
    atomic = 0x00000000FF0779A8, 0x000EA800081F4144  # nvdisasm: ATOMG.E.ADD.STRONG.GPU PT, R7, [UR4], R0
    assert used(flow, [to_pair_4, atomic, EXIT], TURING)
    assert not used(flow, [to_pair_4, (atomic[0], atomic[1] & ~0xFF | 0x48), EXIT], TURING)  # [UR8]


def test_threads_go_on_where_they_parted_by_the_barrier_that_was_restored(flow: Path) -> None:
    """They part by B3, which is restored as B2."""
    part = 0x0000003000037945, 0x0003800000
    save, restore = (0x0000000003157355, 0x0000100000), (0x0000001502007356, 0)  # BMOV.32.CLEAR R21, B3; B2, R21
    meet, elsewhere = (0x0000000000027941, 0x0003800000), (0x0000000000037941, 0x0003800000)
    stored = [(EXIT[0], 7 << 23), store(6, 4), EXIT]
    assert used(flow, [WORD, part, restore, meet, *stored])
    assert used(flow, [WORD, part, save, elsewhere, *stored])
    assert not used(flow, [WORD, part, save, meet, *stored])


def barrier(kind: int, number: int, instructions: int = 0) -> tuple[int, int]:
    """Part until so many instructions on from the next one (BSSY), or meet (BSYNC), by a barrier."""
    return kind | ALWAYS | number << 16 | 16 * instructions << 32, 0x0003800000


def saved(number: int, register: int) -> tuple[int, int]:
    """BMOV.32.CLEAR of a barrier to a register."""
    return 0x355 | ALWAYS | register << 16 | number << 24, 0x0000100000


def restored(number: int, register: int) -> tuple[int, int]:
    """BMOV.32 of a register to a barrier."""
    return 0x356 | ALWAYS | number << 24 | register << 32, 0


PART, MEET = 0x945, 0x941
SPILL = 0x387 | ALWAYS | 1 << 24 | 16 << 32, 0x100800
"""STL [R1], R16."""


@pytest.mark.parametrize(
    ("between", "expected"),
    [
        ([], False),
        ([calculate(MOVE, 18, 255, 16, 255), restored(0, 18)], False),  # by way of another register
        ([SPILL], True),  # from memory any barrier may come
    ],
)
def test_a_barrier_that_was_restored_is_the_one_that_was_saved(flow: Path, between: Code, expected: bool) -> None:
    """The outer barrier is in R16 while threads meet by the inner one, who do not come to the store again."""
    inner = [saved(0, 16), barrier(PART, 0, 1), barrier(MEET, 0), store(6, 4)]
    outer = [WORD, restored(0, 16), *between, barrier(MEET, 0), EXIT]
    parted = barrier(PART, 0, len(inner) + len(outer) - 1)
    assert used(flow, [parted, *inner, *outer]) is expected


def test_a_register_with_a_barrier_is_no_address(flow: Path) -> None:
    save, restore = saved(0, 7), restored(0, 7)
    assert not used(flow, [WORD, save, store(6, 4), EXIT])
    assert not used(flow, [WORD, save, restore, EXIT])
    assert not used(flow, [WORD, restore, EXIT])
    assert used(flow, [WORD, restore, saved(0, 11), store(10, 4), EXIT])


END = 0x91B | ALWAYS, 0x0003800000
EXCHANGE = 0x0800000E07077389, 0x0000640000000000
"""nvdisasm: SHFL.DOWN P0, R7, R7, R14, R0."""


def collective(instructions: int) -> tuple[int, int]:
    """WARPSYNC.COLLECTIVE R2, from where threads go on so many instructions behind the next one."""
    return 0x348 | ALWAYS | 2 << 24 | 16 * instructions // 4 << 16, 0x000FEA0003C00000


def test_what_threads_do_together_is_done_by_each(flow: Path) -> None:
    overwrite = calculate(ADD, 7, 4, 5, 255)
    assert used(flow, [WORD, collective(2), EXCHANGE, END, store(6, 4), EXIT])
    assert not used(flow, [WORD, overwrite, collective(2), EXCHANGE, END, store(6, 4), EXIT])
    assert not used(flow, [WORD, collective(2), EXCHANGE, END, overwrite, store(6, 4), EXIT])
    # Each goes on where it is told to, after that or without it.
    assert used(flow, [WORD, collective(4), EXCHANGE, END, overwrite, EXIT, store(6, 4), EXIT])
    assert used(flow, [collective(3), WORD, END, EXIT, store(6, 4), EXIT])


RETURN = 0x950 | ALWAYS | 12 << 24, 7 << 23 | 0x0003800000
"""RET.REL.NODEC R12."""


def call(instructions: int, behind: int) -> Code:
    """Call what is so many instructions on from the next one; the function returns to the one of that number."""
    word, more = branch(instructions)
    returns = 0x002 | ALWAYS | 4 << 9 | 12 << 16 | 16 * behind << 32, 0xF00
    return [returns, (word & ~0xFFF | 0x944, more)]


@pytest.mark.parametrize(
    ("behind", "expected"),
    [(3, False), (4, True)],  # right behind the call, or elsewhere: then it may be anywhere
)
def test_a_function_returns_to_its_caller(flow: Path, behind: int, expected: bool) -> None:
    """Before the first of two calls to a function that does nothing, R7 does not hold the half, but after it there is a
    store; before the second one it does.
    """
    first, second = [*call(6, 2), store(6, 4)], [WORD, *call(2, behind + 3), calculate(ADD, 7, 4, 5, 255), EXIT]
    assert used(flow, [*first, *second, RETURN]) is expected
    # What the function leaves in registers comes to its callers.
    assert used(flow, [*call(2, 2), store(6, 4), EXIT, WORD, RETURN])


def test_fields_without_operands_name_no_registers(flow: Path) -> None:
    word = load(FIRST_PARAMETER + 8, 8, to=0)
    lower = load(FIRST_PARAMETER + 4, 8, to=0)  # the half to R0
    # nvdisasm: MOV R11, 0x7; SEL R11, RZ, 0x7, P0; VIADD R11, R4, 0x7
    for instruction in ((0x00000007000B7802, 0xF00), (0x00000007FF0B7807, 0), (0x00000007040B7836, 0)):
        assert not used(flow, [word, instruction, store(10, 4), EXIT])
        assert not used(flow, [lower, instruction, calculate(MOVE, 0, 255, 5, 0), store(10, 4), EXIT])


TO_STACK = 0x387 | ALWAYS | 1 << 24 | 17 << 32, 0x100800
"""STL [R1], R17."""
NAMED = load(8, 8, bank=4, to=2)
"""LDC.64 R2, c[0x4][0x8]."""
CALL_NAMED = 0x343 | ALWAYS | 2 << 24, 0x0003C00000
"""CALL.ABS.NOINC R2."""
FROM_STACK = 0x983 | ALWAYS | 10 << 16 | 1 << 24, 0x100800
"""LDL R10, [R1]."""


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        ([TO_STACK, NAMED, CALL_NAMED], False),  # what is printed is text
        ([calculate(MOVE, 5, 255, 17, 255), NAMED, CALL_NAMED], True),  # its address is one
        ([calculate(MOVE, 14, 255, 17, 255), NAMED, CALL_NAMED], False),  # and no argument
        ([TO_STACK, FROM_STACK, NAMED, CALL_NAMED], True),
        ([TO_STACK, NAMED, branch(0), CALL_NAMED], True),  # or called otherwise
        ([TO_STACK, NAMED, calculate(MOVE, 2, 255, 8, 255), CALL_NAMED], True),
        ([TO_STACK, CALL_NAMED], True),
        ([TO_STACK], True),  # the rest is not known
        ([store(2, 17), NAMED, CALL_NAMED], True),
    ],
)
def test_what_a_failed_assertion_prints_is_no_address(flow: Path, body: Code, expected: bool) -> None:
    code = [load(FIRST_PARAMETER + 8, 8, to=16), *body, EXIT]
    assert used(flow, code, asserts=True) is expected
    assert used(flow, code)


@pytest.mark.parametrize("code", [[WORD, branch(5), EXIT], [WORD, collective(5), EXIT]])
def test_where_the_ways_are_unknown_any_word_may_be_an_address(flow: Path, code: Code) -> None:
    assert used(flow, code)
