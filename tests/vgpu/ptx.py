"""Small programs in PTX on the virtual GPU, and what they compute for given values."""

from __future__ import annotations

import ctypes
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
from cuda.bindings import driver

from tests.vgpu.virtual_gpu import checked, context

HEAD = ".version 8.3\n.target sm_90\n.address_size 64\n"
Status = driver.CUresult

WORD = {
    np.dtype(kind): name
    for kind, name in [
        ("i1", "s8"),
        ("u1", "u8"),
        ("i2", "s16"),
        ("u2", "u16"),
        ("i4", "s32"),
        ("u4", "u32"),
        ("i8", "s64"),
        ("u8", "u64"),
        ("f2", "b16"),
        ("f4", "f32"),
        ("f8", "f64"),
    ]
}
REGISTER = {1: "b16", 2: "b16", 4: "b32", 8: "b64"}
DECLARATIONS = """
    .reg .pred %p, %q;
    .reg .b16 %h<8>;
    .reg .b32 %r<8>;
    .reg .b64 %w<8>;
    .reg .f32 %f<8>;
    .reg .f64 %d<8>;
"""


@contextmanager
def quick_gpu(settings: str = "") -> Iterator[Any]:
    """A context on a driver that takes no modelled time and keeps no compiled code. One process has one setting."""
    path = Path(tempfile.mkdtemp()) / "quick.vgpu"
    path.write_text("device.cache = none\ncall.compile = 0\nkernel.default = 0\n" + settings)
    os.environ.setdefault("VGPU_CONFIGURATION", str(path))
    with context() as made:
        yield made


class Program:
    """A loaded module."""

    def __init__(self, text: str) -> None:
        self.module = checked(driver.cuModuleLoadData((HEAD + text).encode()))

    def launch(self, name: str, grid: Any, block: Any, *arguments: Any, shared: int = 0) -> driver.CUresult:
        """Launch with integers of 64 bits as arguments, and return the launch's or the synchronization's error."""
        function = checked(driver.cuModuleGetFunction(self.module, name.encode()))
        if shared > 48 << 10:
            largest = driver.CUfunction_attribute.CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES
            checked(driver.cuFuncSetAttribute(function, largest, shared))
        values = [ctypes.c_uint64(int(argument)) for argument in arguments]
        pointers = (ctypes.c_void_p * max(1, len(values)))(*[ctypes.addressof(value) for value in values])
        grid, block = ((*given, 1, 1)[:3] if isinstance(given, tuple) else (given, 1, 1) for given in (grid, block))
        status = driver.cuLaunchKernel(function, *grid, *block, shared, 0, ctypes.addressof(pointers), 0)[0]
        return status if status != Status.CUDA_SUCCESS else driver.cuCtxSynchronize()[0]


_LAUNCHES = """
import sys
from tests.vgpu.ptx import Program, quick_gpu
with quick_gpu():
    program = Program(sys.stdin.read())
    for place in range(int(sys.argv[1])):
        print(program.launch(f"k{place}", 1, 1, 0, 0, 0, 0, 0).value)
"""


def launched_apart(text: str, count: int) -> tuple[list[Status], list[str]]:
    """Launch the kernels k0, k1 and so on of a module in a process of its own.

    Returns what each yields, and the lines of standard error.
    """
    ended = subprocess.run(
        [sys.executable, "-c", _LAUNCHES, str(count)], input=text, capture_output=True, text=True, check=True,
        env={"PYTHONPATH": str(Path(__file__).parents[2]), "PATH": "/usr/bin:/bin"},
    )  # fmt: skip
    return [Status(int(word)) for word in ended.stdout.split()], ended.stderr.splitlines()


def upload(values: np.ndarray) -> Any:
    """Copy an array into new device memory."""
    values = np.ascontiguousarray(values)
    address = checked(driver.cuMemAlloc(max(values.nbytes, 1)))
    checked(driver.cuMemcpyHtoD(address, values.ctypes.data, values.nbytes))
    return address


def download(address: Any, like: np.ndarray) -> np.ndarray:
    """Copy device memory into a new array of the same size and type."""
    found = np.empty_like(like)
    checked(driver.cuMemcpyDtoH(found.ctypes.data, address, found.nbytes))
    return found


def kernel(name: str, parameters: int, body: str) -> str:
    """The text of a kernel that takes numbers of 64 bits, which are in %a0, %a1 and so on."""
    names = [f"{name}_{place}" for place in range(parameters)]
    loads = "\n".join(f"    ld.param.u64 %a{place}, [{given}];" for place, given in enumerate(names))
    listed = ", ".join(f".param .u64 {given}" for given in names)
    return f".visible .entry {name}({listed}) {{\n    .reg .b64 %a<8>;{DECLARATIONS}{loads}\n{body}\n    ret;\n}}\n"


def evaluate(snippets: Sequence[tuple[str, str]], *inputs: np.ndarray) -> list[np.ndarray]:
    """Run pieces of code, each for every element of the inputs.

    A piece is code, with its inputs in %x, %y and %z and its result in %o, and the result's type as NumPy names it.
    """
    count = len(inputs[0])
    registers = "".join(
        f"    .reg .{register_of(values.dtype)} %{letter};\n" for letter, values in zip("xyz", inputs, strict=False)
    )
    loads = "".join(
        f"    mad.wide.u32 %w1, %r0, {values.dtype.itemsize}, %a{place + 1};\n"
        f"    ld.global.{WORD[values.dtype]} %{letter}, [%w1];\n"
        for place, (letter, values) in enumerate(zip("xyz", inputs, strict=False))
    )
    pieces = []
    for place, (code, result) in enumerate(snippets):
        kind = np.dtype(result)
        pieces.append(
            f"    {{ .reg .{register_of(kind)} %o;\n    {code}\n    mad.lo.u32 %r1, {place}, {count}, %r0;\n"
            f"    mul.wide.u32 %w1, %r1, 8; add.u64 %w1, %w1, %a0;\n    st.global.{WORD[kind]} [%w1], %o; }}\n"
        )
    body = f"{registers}    mov.u32 %r0, %ctaid.x;\n{loads}{''.join(pieces)}"
    results = np.zeros((len(snippets), count, 8), np.uint8)
    with quick_gpu():
        addresses = [upload(values) for values in (results, *inputs)]
        assert Program(kernel("pieces", len(addresses), body)).launch("pieces", count, 1, *addresses) == 0
        results = download(addresses[0], results)
    return [
        results[place, :, : np.dtype(result).itemsize].copy().view(result)[:, 0]
        for place, (_, result) in enumerate(snippets)
    ]


def register_of(kind: np.dtype[Any]) -> str:
    """The type of a register that holds values of an array."""
    return WORD[kind] if kind in (np.dtype("f4"), np.dtype("f8")) else REGISTER[kind.itemsize]


INDEX = "    mov.u32 %r0, %tid.x; mad.wide.u32 %w0, %r0, 4, %a0;\n"


def run(
    body: str, threads: int, *, blocks: int = 1, before: str = "", shared: int = 0, words: int | None = None
) -> np.ndarray:
    """Run a kernel whose only argument is an array of words, all zero at first, and return them."""
    zeros = np.zeros(words or threads * blocks, np.uint32)
    with quick_gpu():
        address = upload(zeros)
        assert Program(before + kernel("k", 1, INDEX + body)).launch("k", blocks, threads, address, shared=shared) == 0
        return download(address, zeros)
