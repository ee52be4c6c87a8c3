"""Reading the names in a recording, whole and damaged."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from ffm.instrument.recording.chunks import Chunk, DamageError
from ffm.instrument.recording.layout import constant, record_type
from ffm.instrument.recording.names import read_kernels, read_modules
from ffm.instrument.recording.stacks import read_python_functions

NAME = b"libexample.so"


def record(structure: str, text: bytes, **fields: Any) -> bytes:
    head = np.zeros(1, record_type(structure))
    for field, value in fields.items():
        head[field] = value
    return (head.tobytes() + text).ljust(-(-(head.itemsize + len(text)) // 8) * 8, b"\0")


def chunk(kind: str, content: bytes) -> list[Chunk]:
    return [({"kind": constant(kind)}, np.frombuffer(content, np.uint8))]


def modules(cut: int = 0) -> list[Chunk]:
    content = 2 * record("ffm_module", NAME, path_bytes=len(NAME), base=4096)
    return chunk("FFM_CHUNK_MODULES", content[: len(content) - cut])


def kernels(cut: int = 0) -> list[Chunk]:
    content = 2 * record("ffm_kernel_name", NAME, bytes=len(NAME), time=5, handle=7)
    return chunk("FFM_CHUNK_KERNELS", content[: len(content) - cut])


def functions(cut: int = 0) -> list[Chunk]:
    content = record("ffm_python_code", b"train.py" + NAME, number=3, file_bytes=8, name_bytes=len(NAME))
    return chunk("FFM_CHUNK_PYTHON_CODES", content[: len(content) - cut])


def test_names_are_read() -> None:
    assert [(module.path, module.base) for module in read_modules(modules())] == 2 * [(NAME.decode(), 4096)]
    assert [(kernel.name, kernel.time, kernel.handle) for kernel in read_kernels(kernels())] == 2 * [
        (NAME.decode(), 5, 7)
    ]
    assert read_python_functions(functions()) == {3: ("train.py", NAME.decode())}


@pytest.mark.parametrize(
    ("read", "chunks"), [(read_modules, modules), (read_kernels, kernels), (read_python_functions, functions)]
)
@pytest.mark.parametrize("cut", [10, 30])
def test_a_cut_name_is_refused(read: Any, chunks: Any, cut: int) -> None:
    """Cut within the name, and within what comes before it."""
    with pytest.raises(DamageError, match="is cut"):
        read(chunks(cut))
