"""Compiles programs against the virtual runtime, or NVIDIA's."""

from __future__ import annotations

import subprocess
from pathlib import Path

from ffm.vgpu.paths import library_folder
from tests.conftest import cuda_include

HEADERS = Path(__file__).resolve().parents[2] / "ffm" / "vgpu" / "include"
NVIDIA_LIBRARIES = cuda_include().parent / "lib"

OURS = ("-lcudart", f"-L{library_folder()}", f"-Wl,-rpath,{library_folder()}")
STATIC = (str(NVIDIA_LIBRARIES / "libcudart_static.a"), "-ldl", "-lrt", "-lpthread")
SHARED = (str(NVIDIA_LIBRARIES / "libcudart.so.13"), f"-Wl,-rpath,{NVIDIA_LIBRARIES}")
"""What links a program with the virtual runtime, and with NVIDIA's, statically as nvcc does by default, or shared."""


def compile_program(source: Path, program: Path, runtime: tuple[str, ...], *flags: str) -> None:
    """Compile C++ in `source`, whatever its name ends in; `flags` come before it."""
    command = [
        "g++", "-std=c++17", "-Wall", "-Wextra", "-Werror", *flags, "-x", "c++", str(source), "-x", "none",
        "-o", str(program), f"-I{HEADERS}", "-isystem", str(cuda_include()), *runtime,
    ]  # fmt: skip
    subprocess.run(command, check=True)
