"""Code that reads what a program gives it, on random input."""

from __future__ import annotations

import struct
from pathlib import Path

import pytest

from ffm.driver.catalogue import load_catalogue
from ffm.driver.generate import include_text
from tests.conftest import cuda_include
from tests.native.cubins import EXIT, FIRST_PARAMETER, container, cubin, load
from tests.native.fuzzing import fuzz
from tests.native.layers import NATIVE, includes_of

pytestmark = pytest.mark.sanitized

HERE = Path(__file__).parent
INSTRUCTIONS = NATIVE / "watch" / "instructions"


def test_what_is_emulated_is_within_what_the_decoder_tells(tmp_path: Path) -> None:
    sources = [INSTRUCTIONS / f"{name}.c" for name in ("instruction", "decoding", "emulation", "emulated_vectors")]
    fuzz(tmp_path, HERE / "fuzz_instruction.c", sources, [f"-I{INSTRUCTIONS}"], longest=15)


def test_notes_of_any_file_are_read_within_their_bytes(tmp_path: Path) -> None:
    note = struct.pack("<III", 4, 20, 3) + b"GNU\0" + bytes(range(20))
    fuzz(tmp_path, HERE / "fuzz_notes.c", [], includes_of("stacks"), longest=128, examples=[note, note[:24]])


def test_parameters_of_kernels_are_read_within_their_sizes(tmp_path: Path) -> None:
    (tmp_path / "catalogue.inc").write_text(include_text(load_catalogue()))
    options = [f"-I{tmp_path}", *includes_of("watch/parameters"), "-isystem", str(cuda_include())]
    packed = bytes([1, 0b00001001, 0b10000000, *b"\xff" * 8, *range(64)])
    array = bytes([0, 2, 8, *range(8), 16, *range(16)])
    many = bytes([1, 0b00001001, 0, *bytes(8), *range(256), *bytes(2800)])
    sources = [NATIVE / "watch" / "parameters" / "kernels.c", NATIVE / "base" / "mappings.c"]
    fuzz(tmp_path, HERE / "fuzz_parameters.c", sources, options, longest=4096, examples=[packed, array, many])


def test_machine_code_is_read_within_its_bytes(tmp_path: Path) -> None:
    sources = [source for room in ("machine", "values") for source in sorted((NATIVE / "watch" / room).glob("*.c"))]
    code = cubin("kernel", [(0, 8), (8, 16)], [load(FIRST_PARAMETER, 8), EXIT])
    options = includes_of("watch/values")
    fuzz(tmp_path, HERE / "fuzz_machine_code.c", sources, options, longest=len(code) + 256, examples=[code])


def test_containers_are_read_within_their_bytes(tmp_path: Path) -> None:
    code = cubin("kernel", [(0, 8), (8, 16)], [load(FIRST_PARAMETER, 8), EXIT])
    examples = [container([(80, code, one), (90, code, one)]) for one in ("", "lz4_raw", "zstd")]
    options = [*includes_of("watch/parameters"), "-lzstd", "-llz4"]
    sources = [NATIVE / "watch" / "parameters" / "containers.c"]
    fuzz(tmp_path, HERE / "fuzz_containers.c", sources, options, longest=len(examples[0]) + 256, examples=examples)
