"""Files with device code containers as nvcc makes them, without the code itself."""

from __future__ import annotations

import struct
import subprocess
from pathlib import Path

PTX, CUBIN = 1, 2


def container(*entries: tuple[int, int]) -> bytes:
    """Return a container with one entry per (kind, architecture), in the layout of nvcc 13.0."""
    body = b""
    for kind, architecture in entries:
        code = bytes(24)
        body += struct.pack("<HHIQIIHHI", kind, 0x101, 64, len(code), 0, 0, 8, 1, architecture) + bytes(32) + code
    return struct.pack("<IHHQ", 0xBA55ED50, 1, 16, len(body)) + body


def source_with(path: Path, content: bytes) -> Path:
    """Write a C++ source that puts `content` into the section of device code."""
    numbers = ", ".join(map(str, content))
    path.write_text(
        '__attribute__((section(".nv_fatbin"), used, aligned(8)))\n'
        f"static const unsigned char device_code[] = {{{numbers}}};\n"
    )
    return path


def library_with(folder: Path, content: bytes) -> Path:
    """Build a shared library that contains `content` as its device code."""
    source = source_with(folder / "device_code.cpp", content)
    library = folder / "libdevice_code.so"
    subprocess.run(["g++", "-shared", "-fPIC", "-o", str(library), str(source)], check=True)
    return library
