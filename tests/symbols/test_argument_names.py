"""Names in a program's source for what it passes at a call, from its code and debug information."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

import pytest

from ffm.symbols.argument_names import ArgumentNames

SOURCE = """
extern "C" int take(void **, unsigned long);
extern "C" int give(void *);

static float *everywhere;
struct Level { float *fine, *coarse; };
struct Solver {
    Level levels[2];
    int count;
    __attribute__((noinline)) int fill(unsigned long bytes) { return take((void **)&levels[1].fine, bytes); }
};

__attribute__((noinline)) int local(unsigned long bytes)
{
    float *matrix = nullptr, *right_side = nullptr;
    int failed = take((void **)&matrix, bytes);
    failed += take((void **)&right_side, bytes / 2);
    failed += give(matrix);
    return failed + give(right_side);
}

__attribute__((noinline)) int handed_over(float *values, Solver &solver, Level *level)
{
    int failed = give(values);
    failed += take((void **)&solver.levels[0].coarse, 8);
    failed += take((void **)&level->coarse, 8);
    return failed + take((void **)&everywhere, 8);
}

static inline __attribute__((always_inline)) int wrapped(void **where) { return take(where, 16); }

__attribute__((noinline)) int inlined(unsigned long bytes)
{
    float *first = nullptr;
    int failed = wrapped((void **)&first);
    {
        float *second = nullptr;
        failed += take((void **)&second, bytes) + give(second);
    }
    return failed + give(first);
}

int main(int count, char **)
{
    Solver solver{};
    return local(count) + solver.fill(count) + handed_over(everywhere, solver, solver.levels) + inlined(count);
}
"""

CALLS = [
    ("local", ["matrix", "right_side", "matrix", "right_side"]),
    ("fill", ["levels[1].fine"]),
    ("handed_over", ["values", "solver.levels[0].coarse", "level->coarse", "everywhere"]),
    ("inlined", ["first", "second", "second", "first"]),
]


@pytest.fixture(scope="module", params=["-O0", "-O1", "-O2", "-O2 -gdwarf-4", "-O2 -fno-omit-frame-pointer"])
def program(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("names")
    (folder / "library.cpp").write_text(
        'extern "C" int take(void **, unsigned long) { return 0; } extern "C" int give(void *) { return 0; }'
    )
    (folder / "program.cpp").write_text(SOURCE)
    compiler = ["g++", "-g", *request.param.split(), "-c", "-fno-optimize-sibling-calls"]
    for name in ("library", "program"):
        subprocess.run([*compiler, f"{name}.cpp"], check=True, cwd=folder)
    subprocess.run(["g++", "library.o", "program.o", "-o", "program"], check=True, cwd=folder)
    return folder / "program"


def calls_in(program: Path, function: str) -> list[tuple[str, int]]:
    """Return (callee, address after the call) of all calls of `take` and `give` in a function."""
    listing = subprocess.run(
        ["objdump", "-d", "-C", "--no-show-raw-insn", str(program)], check=True, capture_output=True, text=True
    ).stdout
    body = next(part for part in listing.split("\n\n") if re.match(rf"[0-9a-f]+ <(\w+::)?{function}\(", part))
    lines = body.splitlines()
    found = []
    for line, following in zip(lines, [*lines[1:], ""], strict=True):
        match = re.search(r"call\s+[0-9a-f]+ <(take|give)>", line)
        if match:
            found.append((match[1], int(following.split(":")[0], 16)))
    return found


@pytest.mark.parametrize(("function", "expected"), CALLS)
def test_arguments_have_the_names_of_the_source(function: str, expected: list[str], program: Path) -> None:
    names = ArgumentNames(program)
    found = [
        names.pointed_to(address, 0) if callee == "take" else names.passed(address, 0)
        for callee, address in calls_in(program, function)
    ]
    assert [name.replace("*where", "first") for name in found] == expected  # without optimisation `where` has a place


def test_what_is_no_call_or_has_no_debug_information_has_no_name(program: Path) -> None:
    _, address = calls_in(program, "local")[0]
    assert ArgumentNames(program).passed(address - 1, 0) == ""
    stripped = program.with_name("stripped")
    subprocess.run(["strip", "-o", str(stripped), str(program)], check=True)
    assert ArgumentNames(stripped).pointed_to(address, 0) == ""
    assert ArgumentNames(program.with_name("missing")).passed(address, 0) == ""
