"""Which of its parameters a kernel reads when it is launched with certain numbers of blocks and certain values."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from tests.native.cubins import EXIT, FIRST_PARAMETER, load
from tests.native.layers import NATIVE, includes_of

MAIN = """
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "parameter_values.h"
int main(int argc, char **argv)
{
    static uint64_t code[2048];
    static ffm_given_values given;
    ffm_values_read read;
    given.count = (uint32_t)atoi(argv[1]);
    memset(given.bytes, 0xab, sizeof given.bytes);
    memset(given.known, true, given.count);
    for (int axis = 0; axis < 3; axis++)
        given.blocks[axis] = (uint32_t)atoi(argv[2 + axis]);
    const uint32_t number = (uint32_t)atoi(argv[6]);
    memcpy(given.bytes + atoi(argv[5]), &number, sizeof number);
    for (int i = 7; i < argc; i++)
        code[i - 7] = strtoull(argv[i], NULL, 0);
    if (!ffm_parameter_values(90, (uint8_t *)code, 8 * (argc - 7), &given, &read))
        puts("unknown");
    else
        for (uint32_t byte = 0; byte < given.count; byte++)
            putchar((read.read[byte / 8] & 1 << byte % 8) != 0 ? '1' : '0');
}
"""

Code = list[tuple[int, int]]

PICKED: Code = [
    (0x00000A00FF017B82, 0x000FE20000000800),
    (0x0000000000007919, 0x000E220000002600),
    (0x00000008FF037435, 0x000FE200000001FF),
    (0x0000000000047AB9, 0x000FE20000000800),
    (0x0000000000077919, 0x000E620000002500),
    (0x0000000000047919, 0x000E6E0000002100),
    (0x0000000300027211, 0x001FC400078E10FF),
    (0x0000000300007211, 0x000FC800078E18FF),
    (0x0000A40002027B82, 0x000E220000000800),
    (0x0000000407077C24, 0x002FCA000F8E0204),
    (0x000000020700720C, 0x001FDA0003F06270),
    (0x000000000000094D, 0x000FEA0003800000),
    (0x0000840000027B82, 0x000E220000000A00),
    (0x0000820000047AB9, 0x000FE20000000A00),
    (0x0000B60000067AB9, 0x000FCC0000000800),
    (0x00008400FF047B82, 0x000E620000000A00),
    (0x0000000407027825, 0x001FCC00078E0202),
    (0x0000000402037981, 0x000EA2000C1E1900),
    (0x0000000607077C24, 0x000FC8000F8E02FF),
    (0x0000000407047825, 0x002FCA00078E0204),
    (0x0000000304007986, 0x004FE2000C101904),
    (0x000000000000794D, 0x000FEA0003800000),
    (0xFFFFFFFC00FC7947, 0x000FC0000383FFFF),
]
"""Of nvcc 13 for sm_90:

    struct Table { float *rows[16]; int count[16]; };
    __global__ void picked(float *out, Table table, int stride)
    {
        float *from = table.rows[blockIdx.y];
        int i = blockIdx.x * blockDim.x + threadIdx.x;
        if (i < table.count[blockIdx.y])
            out[i * stride] = from[i];
    }
"""

TURNED: Code = [
    (0x00000A00FF017B82, 0x000FE20000000800),
    (0x0000000000057919, 0x000E2E0000002100),
    (0x00008400FF027B82, 0x000E220000000A00),
    (0x0000860000057AB9, 0x000FE20000000800),
    (0x0000820000087AB9, 0x000FE20000000A00),
    (0x00000005FF007C0C, 0x000FDA000BF01270),
    (0x000000FFFF078224, 0x000FE400078E00FF),
    (0x0000000405027825, 0x001FE200078E0002),
    (0x0000000000348947, 0x000FEC0003800000),
    (0x0000000000067919, 0x000E220000002100),
    (0x00000000FF007435, 0x000FE200000001FF),
    (0x000000FFFF077224, 0x000FE200078E00FF),
    (0x0000000800047882, 0x000FD20000000000),
    (0x0000860004067ABB, 0x000FE40008000A00),
    (0x0000000606047C11, 0x001FC8000F8010FF),
    (0x0000000706057C11, 0x000FCA00080F14FF),
    (0x0000000804047981, 0x000EA2000C1E1900),
    (0x0000000100007836, 0x000FE20000000000),
    (0x0000000804047890, 0x000FC8000FFFE03F),
    (0x0000000500007C0C, 0x000FE2000BF06270),
    (0x0000000704077221, 0x004FD80000000000),
    (0xFFFFFFFC00DC8947, 0x000FEA000383FFFF),
    (0x0000000702007986, 0x000FE2000C101908),
    (0x000000000000794D, 0x000FEA0003800000),
    (0xFFFFFFFC00FC7947, 0x000FC0000383FFFF),
]
"""The same of:

    struct Some { int number; float *rows[16]; };
    __global__ void turned(float *out, Some some)
    {
        float sum = 0;
        #pragma unroll 1
        for (int i = 0; i < some.number; i++)
            sum += some.rows[i][threadIdx.x];
        out[threadIdx.x] = sum;
    }
"""

ROWS, COUNTS, STRIDE, PICKED_BYTES = 8, 136, 200, 204
NUMBER, TURNED_ROWS, TURNED_BYTES = 8, 16, 144


@pytest.fixture(scope="module")
def values(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("values")
    (folder / "main.c").write_text(MAIN)
    subprocess.run(
        ["gcc", "-std=c11", "-D_GNU_SOURCE", "-O1", "-g", "-fsanitize=address,undefined", "-fno-sanitize-recover=all",
         *includes_of("watch/values"), "-o", str(folder / "values"), str(folder / "main.c"),
         *map(str, [*(NATIVE / "watch" / "machine").glob("*.c"), *(NATIVE / "watch" / "values").glob("*.c")])],
        check=True,
    )  # fmt: skip
    return folder / "values"


def read(
    values: Path, code: Code, size: int, *, blocks: tuple[int, int, int] = (1, 1, 1), number: tuple[int, int] = (0, 0)
) -> set[int] | None:
    """Return the bytes that may be read, or None if these are not known. Each word that is not given is no number."""
    words = [hex(word) for instruction in code for word in instruction]
    asked = [values, str(size), *map(str, blocks), *map(str, number), *words]
    shown = subprocess.run(asked, capture_output=True, text=True, check=True).stdout.strip()
    return None if shown == "unknown" else {byte for byte, bit in enumerate(shown) if bit == "1"}


def span(begin: int, length: int) -> set[int]:
    return set(range(begin, begin + length))


@pytest.mark.parametrize("rows", [1, 2, 7, 16])
def test_blocks_pick_as_many_elements_as_there_are(values: Path, rows: int) -> None:
    expected = span(0, 8) | span(ROWS, 8 * rows) | span(COUNTS, 4 * rows) | span(STRIDE, 4)
    assert read(values, PICKED, PICKED_BYTES, blocks=(5, rows, 3)) == expected


def test_without_a_number_of_blocks_any_element_is_picked(values: Path) -> None:
    assert read(values, PICKED, PICKED_BYTES, blocks=(0, 0, 0)) == span(0, PICKED_BYTES)


@pytest.mark.parametrize("number", [0, 1, 2, 9, 16])
def test_a_loop_turns_as_often_as_a_parameter_says(values: Path, number: int) -> None:
    expected = span(0, NUMBER + 4) | span(TURNED_ROWS, 8 * number)
    assert read(values, TURNED, TURNED_BYTES, number=(NUMBER, number)) == expected


def test_of_many_turns_any_element_may_be_read(values: Path) -> None:
    assert read(values, TURNED, TURNED_BYTES, number=(NUMBER, 1000)) == span(0, TURNED_BYTES)
    assert read(values, TURNED, TURNED_BYTES, number=(NUMBER, 1 << 30)) == span(0, TURNED_BYTES)


@pytest.mark.parametrize("place", range(10, 23))
def test_what_is_not_calculated_makes_more_readable_not_less(values: Path, place: int) -> None:
    """An instruction that nobody knows, in the place of one that does not touch what is picked."""
    unknown = (0x0000000000007F01, 0)
    known = read(values, PICKED, PICKED_BYTES, blocks=(5, 3, 3))
    changed = read(values, [*PICKED[:place], unknown, *PICKED[place:]], PICKED_BYTES, blocks=(5, 3, 3))
    assert known is not None
    assert changed is None or changed >= known


@pytest.mark.parametrize("place", range(2, 12))
def test_an_index_that_is_overwritten_may_be_any(values: Path, place: int) -> None:
    """By another number of which nothing is known: S2R R0 to R9, SR_TID.X."""
    for register in range(10):
        overwrite = (0x7919 | register << 16, 0x21 << 8)
        code = [*PICKED[:place], overwrite, *PICKED[place:]]
        changed = read(values, code, PICKED_BYTES, blocks=(5, 3, 3))
        assert changed is not None
        assert changed >= span(0, 8) | span(ROWS, 24) | span(STRIDE, 4)


def test_what_no_thread_executes_is_not_read(values: Path) -> None:
    never = ~0xF000 & (1 << 64) - 1
    word, more = load(FIRST_PARAMETER + 16, 8, to=6)
    not_executed = (word & never | 0xF000, more)  # @!PT
    assert read(values, [not_executed, EXIT], 24) == set()
    perhaps = (word & never, more)  # @P0, which nothing has set
    assert read(values, [perhaps, EXIT], 24) == span(16, 8)
    always = (EXIT[0], 7 << 23)
    assert read(values, [always, (word, more)], 24) == set()


def test_of_a_function_elsewhere_results_are_unknown(values: Path) -> None:
    """A register above those of results is kept: nvdisasm shows S2R and CALL.ABS.NOINC R14."""
    call = (0x000000000E007343, 0)
    for register, expected in ((4, span(0, 24)), (20, span(8, 8))):
        zero = (0x7802 | register << 16, 0xF << 8)
        code = [zero, call, load(FIRST_PARAMETER + 8, 8, index=register, to=6), EXIT]
        assert read(values, code, 24) == expected


@pytest.mark.parametrize(
    ("modifiers", "expected"),
    [
        (0x7FE01, span(8, 8)),  # VIMNMX R4, R4, -0x8, !PT: the larger of 0 and -8
        (0x3FE00, span(8, 8)),  # VIMNMX.U32 R4, R4, -0x8, PT: the lesser without signs
        (0x3FE01, span(0, 24)),  # VIMNMX R4, R4, -0x8, PT: -8, which leads before the parameters
        (0x7FE11, span(0, 24)),  # VIMNMX.RELU, which is not followed
    ],
)
def test_the_lesser_and_the_larger_number_are_known(values: Path, modifiers: int, expected: set[int]) -> None:
    zero, bound = (0x7802 | 4 << 16, 0xF << 8), (0x7848 | 4 << 16 | 4 << 24 | 0xFFFFFFF8 << 32, modifiers << 8)
    assert read(values, [zero, bound, load(FIRST_PARAMETER + 8, 8, index=4, to=6), EXIT], 24) == expected


def test_a_barrier_is_saved_in_one_register(values: Path) -> None:
    zero = (0x7802 | 4 << 16, 0xF << 8)
    for register, expected in ((4, span(0, 24)), (3, span(8, 8)), (5, span(8, 8))):
        saved, restored = (0x7355 | register << 16, 0x0000100000), (0x7356 | register << 32, 0)
        code = [zero, saved, restored, load(FIRST_PARAMETER + 8, 8, index=4, to=6), EXIT]
        assert read(values, code, 24) == expected


def test_loads_before_the_parameters_may_be_of_their_address(values: Path) -> None:
    zero = (0x7802 | 4 << 16, 0xF << 8)
    assert read(values, [zero, load(0x18, 8, index=4, to=6), EXIT], 24) is None
