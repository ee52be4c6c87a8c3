"""Libraries that enter a program have few thread-local variables.

They are loaded late and accessed from signal handlers, so these variables lie in the static block of each thread.
There, glibc keeps some 1,700 bytes for all libraries that are loaded late, the program's own among them: one that finds
too little left cannot be loaded at all.
"""

from __future__ import annotations

import pytest
from elftools.elf.elffile import ELFFile

from ffm.instrument.library import COLLECTOR, native_library

MOST_BYTES = 768


@pytest.mark.parametrize("name", [COLLECTOR, "libffm_remedy.so", "libffm_pages.so", "libffm_heap.so"])
def test_libraries_leave_room_for_those_of_the_program(name: str) -> None:
    with native_library(name).open("rb") as file:
        sizes = [part["p_memsz"] for part in ELFFile(file).iter_segments() if part["p_type"] == "PT_TLS"]
    assert sum(sizes) <= MOST_BYTES
