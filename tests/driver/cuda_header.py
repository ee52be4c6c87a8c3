"""The prototypes of an installed `cuda.h`, read by a C parser."""

from __future__ import annotations

import subprocess
from dataclasses import dataclass
from functools import cache
from importlib.util import find_spec
from pathlib import Path

import pytest
from pycparser import c_ast, c_parser

# The parser only knows standard C.
_EXTENSIONS = (
    "__attribute__(x)=",
    "__extension__=",
    "__inline=inline",
    "__restrict=restrict",
    "__asm__(x)=",
    "_Float32=float",
    "_Float64=double",
    "_Float128=double",
    "_Float32x=float",
    "_Float64x=double",
    "__builtin_va_list=int",
)


@dataclass(frozen=True, slots=True)
class Argument:
    type: str
    """Name of the innermost type, without qualifiers."""
    pointers: int


def header_path() -> Path:
    """Return the path of `cuda.h` in the CUDA runtime's wheel, or skip the test."""
    spec = find_spec("nvidia.cu13")
    for folder in (spec.submodule_search_locations or []) if spec else []:
        header = Path(folder) / "include" / "cuda.h"
        if header.exists():
            return header
    pytest.skip("no cuda.h: the package nvidia-cuda-runtime is not installed")


@cache
def prototypes() -> dict[str, tuple[Argument, ...]]:
    """Return the arguments of every function in `cuda.h`, including older versions and stream variants."""
    header = header_path()
    found: dict[str, tuple[Argument, ...]] = {}
    for macro in ("FFM_PLAIN", "CUDA_API_PER_THREAD_DEFAULT_STREAM", "__CUDA_API_VERSION_INTERNAL"):
        command = [
            "gcc",
            "-E",
            "-P",
            "-x",
            "c",
            f"-D{macro}",
            *(f"-D{item}" for item in _EXTENSIONS),
            str(header),
        ]
        text = subprocess.run(command, check=True, capture_output=True, text=True).stdout
        for node in c_parser.CParser().parse(text).ext:
            if isinstance(node, c_ast.Decl) and isinstance(node.type, c_ast.FuncDecl) and node.name[:2] == "cu":
                found[node.name] = tuple(_arguments(node.type))
    return found


def _arguments(function: c_ast.FuncDecl) -> list[Argument]:
    arguments = [_argument(parameter.type) for parameter in function.args.params] if function.args else []
    return [argument for argument in arguments if argument != Argument("void", 0)]


def _argument(node: c_ast.Node) -> Argument:
    pointers = 0
    while isinstance(node, (c_ast.PtrDecl, c_ast.ArrayDecl)):
        pointers += 1
        node = node.type
    inner = node.type
    return Argument(" ".join(inner.names) if hasattr(inner, "names") else str(inner.name), pointers)
