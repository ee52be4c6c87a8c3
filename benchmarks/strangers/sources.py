"""Programs of a HeCBench checkout: a copy of each is built by its own Makefile, which also says how to run it."""

from __future__ import annotations

import re
import shlex
import shutil
from dataclasses import dataclass
from pathlib import Path

from processes import Ended, call
from toolchain import ARCHITECTURE, Toolchain

SUFFIX = "-cuda"
_ASSIGNMENT = re.compile(r"\w+=")


@dataclass(frozen=True, slots=True)
class Command:
    """A command line of a program, and the folder that it runs in."""

    folder: Path
    words: list[str]


def names(checkout: Path) -> list[str]:
    """Return the programs of a checkout in the order of their names."""
    return sorted(path.parent.name.removesuffix(SUFFIX) for path in checkout.glob(f"*{SUFFIX}/Makefile"))


def copy(checkout: Path, name: str, work: Path) -> Path:
    """Copy the program's folder into `work`, unless it is there; its neighbours, which it may read, become links."""
    target = work / f"{name}{SUFFIX}"
    work.mkdir(parents=True, exist_ok=True)
    for neighbour in checkout.iterdir():
        link = work / neighbour.name
        if not link.exists() and neighbour.is_dir():
            link.symlink_to(neighbour.resolve())
    if target.is_symlink():
        target.unlink()
        shutil.copytree(checkout / target.name, target, symlinks=True)
    return target


def build(folder: Path, toolchain: Toolchain, limit_s: float) -> Ended:
    """Build the program with its Makefile's first target."""
    return call(["make", *_variables(toolchain)], folder, _path(toolchain), limit_s)


def commands(folder: Path, toolchain: Toolchain) -> list[Command]:
    """Return what `make run` would call of the program itself, once it is built."""
    plan = call(["make", "-n", *_variables(toolchain), "run"], folder, _path(toolchain), 60.0)
    found = (_command(line, folder) for line in plan.output.replace("\\\n", " ").splitlines())
    return [command for command in found if command is not None]


def _command(line: str, folder: Path) -> Command | None:
    try:
        words = shlex.split(line.split("&&")[-2 if line.rstrip().endswith("cd ..") else -1], comments=True)
    except ValueError:
        return None
    entered = re.match(r"\s*cd\s+(\S+)\s*&&", line)
    if entered is not None:
        folder = folder / entered[1]
    while words and _ASSIGNMENT.match(words[0]):
        words.pop(0)
    words = [word for word in words if not re.match(r"\d?>", word)]
    if not words or not (folder / words[0]).is_file():
        return None
    program = (folder / words[0]).resolve()
    with program.open("rb") as file:
        return Command(folder, [str(program), *words[1:]]) if file.read(4) == b"\x7fELF" else None


def _variables(toolchain: Toolchain) -> list[str]:
    return [f"CC={toolchain.wrapper}", f"NVCC={toolchain.wrapper}", f"ARCH={ARCHITECTURE}", "LAUNCHER="]


def _path(toolchain: Toolchain) -> dict[str, str]:
    import os

    return {"PATH": f"{toolchain.wrapper.parent}:{os.environ['PATH']}"}
