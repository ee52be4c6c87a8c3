"""Memory whose pages are closed is read and written without opening them."""

from __future__ import annotations

import ctypes
import subprocess
import sys
from pathlib import Path

import pytest

from tests.native.layers import NATIVE, includes_of

SETUP = """
import ctypes, os, resource, sys
native = ctypes.CDLL(sys.argv[1])
libc = ctypes.CDLL(None, use_errno=True)
for name in ("read", "write", "may_write"):
    getattr(native, f"ffm_closed_memory_{name}").restype = ctypes.c_bool
libc.mmap.restype = ctypes.c_void_p
page = libc.mmap(None, ctypes.c_size_t(4096), 3, 0x22, -1, ctypes.c_long(0))
ctypes.memmove(page, b"before", 6)
assert libc.mprotect(ctypes.c_void_p(page), ctypes.c_size_t(4096), 0) == 0

def read():
    found = ctypes.create_string_buffer(6)
    return found.raw if native.ffm_closed_memory_read(ctypes.c_uint64(page), found, 6) else None

def write(text):
    return native.ffm_closed_memory_write(ctypes.c_uint64(page), text, len(text))

def files():
    return [int(name) for name in os.listdir("/proc/self/fd")]
"""


@pytest.fixture(scope="module")
def library(tmp_path_factory: pytest.TempPathFactory) -> Path:
    library: Path = tmp_path_factory.mktemp("closed_memory") / "libclosed_memory.so"
    subprocess.run(
        [
            "gcc", "-std=c11", "-D_GNU_SOURCE", "-O1", "-Wall", "-Wextra", "-Werror", "-fPIC", "-shared",
            *includes_of("watch/memory"), "-o", str(library), str(NATIVE / "watch/memory/closed_memory.c"),
        ],
        check=True,
    )  # fmt: skip
    return library


@pytest.mark.parametrize(
    "steps",
    [
        'assert read() == b"before" and write(b"behind") and read() == b"behind"',
        # It takes no place that the program may count on.
        "low = os.open('/dev/null', os.O_RDONLY); os.close(low); assert read(); "
        "assert os.open('/dev/null', os.O_RDONLY) == low",
        # Whether the kernel lets us write is tried on memory of our own.
        "assert native.ffm_closed_memory_may_write(); assert read() == b'before'",
        "native.ffm_closed_memory_stop(); assert not native.ffm_closed_memory_may_write()",
        # The program closes all files, or puts one of its own there.
        "assert read(); os.closerange(3, 4096); native.ffm_closed_memory_doubt(); "
        "assert write(b'behind') and read() == b'behind'",
        "assert read(); [os.dup2(1, file) for file in files() if file >= 640]; "
        "native.ffm_closed_memory_doubt(); assert write(b'behind') and read() == b'behind'",
        # Nothing is left to a child of the parent's memory.
        "assert read()\n"
        "if (child := os.fork()) == 0:\n"
        "    native.ffm_closed_memory_after_fork()\n"
        "    os._exit(0 if write(b'child ') and read() == b'child ' else 1)\n"
        "assert os.waitpid(child, 0)[1] == 0 and read() == b'before'",
        # A child that is not known to be one reaches neither.
        "assert read()\n"
        "if (child := os.fork()) == 0:\n"
        "    os._exit(0 if not write(b'child ') and read() is None else 1)\n"
        "assert os.waitpid(child, 0)[1] == 0 and read() == b'before'",
        "native.ffm_closed_memory_stop(); assert read() is None and not write(b'behind')",
        # There is no room above the program's files.
        "resource.setrlimit(resource.RLIMIT_NOFILE, (64, 64)); before = files(); assert read() is None; "
        "assert files() == before",
    ],
)  # fmt: skip
def test_closed_memory_is_reached_through_a_file_of_its_own(library: Path, steps: str) -> None:
    subprocess.run([sys.executable, "-c", SETUP + steps, str(library)], check=True)


def test_it_says_so_where_nothing_is_mapped(library: Path) -> None:
    native = ctypes.CDLL(str(library))
    native.ffm_closed_memory_read.restype = ctypes.c_bool
    assert not native.ffm_closed_memory_read(ctypes.c_uint64(4096), ctypes.create_string_buffer(8), 8)
