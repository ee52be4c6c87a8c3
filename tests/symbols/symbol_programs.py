"""Small C++ programs, compiled for the tests, that print the return addresses of their own calls."""

from __future__ import annotations

import subprocess
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from ffm.symbols import Location
from ffm.symbols.elf import read_elf

SOURCE = """\
#include <cstdio>
#include <dlfcn.h>

// Prints where its caller stands: the return address, from the module's load base.
__attribute__((noinline)) void here(const char *label) {
    char *address = static_cast<char *>(__builtin_return_address(0));
    Dl_info module;
    dladdr(address, &module);
    char *base = static_cast<char *>(module.dli_fbase);
    std::printf("%s %lx\\n", label, static_cast<unsigned long>(address - base));
}

inline __attribute__((always_inline)) void inner() {
    here("inlined");   // line INNER
    asm volatile("");
}

inline __attribute__((always_inline)) void middle() {
    inner();           // line MIDDLE
}

namespace outer {
template <typename Value> struct Table {
    __attribute__((noinline)) void add(Value value) {
        middle();      // line OUTER
        if (value == 7) std::puts("seven");
    }
};
}

[[noreturn]] __attribute__((noinline)) void last_thing() {
    here("last");
    __builtin_trap();
}

// Ends in a call that does not return, so that the return address lies behind the function's end.
extern "C" __attribute__((noinline)) void ends_in_call(int really) {
    if (really) last_thing();
}

__attribute__((noinline)) void throws(int argument) {
    if (argument == 3) throw argument;
}

// GCC moves handlers of exceptions into a part of its own, "split.cold".
extern "C" __attribute__((noinline)) int split(int argument) {
    try {
        throws(argument);
    } catch (int thrown) {
        here("cold");
        return thrown;
    }
    return 0;
}

int main(int count, char **) {
    setvbuf(stdout, nullptr, _IONBF, 0);
    outer::Table<int>().add(count);
    split(count + 2);
    ends_in_call(count);
}
"""


@dataclass(frozen=True)
class Program:
    """A compiled program and the offsets that it printed, by label."""

    path: Path
    offsets: dict[str, int]

    def location(self, label: str) -> Location:
        return Location(str(self.path), read_elf(self.path).build_id, self.offsets[label], True)


def line_of(marker: str) -> int:
    """Return the source line that contains a marker."""
    return next(n for n, text in enumerate(SOURCE.splitlines(), 1) if f"// line {marker}" in text)


def build_in(folder: Path) -> Callable[..., Program]:
    """A function that compiles the source with given options, runs it, and reads its output."""

    def make(*options: str) -> Program:
        source, path = folder / "probe.cpp", folder / "probe program"
        source.write_text(SOURCE)
        command = [
            "g++",
            "-std=c++17",
            "-O2",
            "-Wl,--build-id",
            *options,
            str(source),
            "-o",
            str(path),
            "-ldl",
        ]
        subprocess.run(command, check=True)
        printed = subprocess.run([str(path)], check=False, capture_output=True, text=True).stdout
        pairs = [line.split() for line in printed.splitlines() if " " in line]
        return Program(path, {label: int(offset, 16) for label, offset in pairs})

    return make
