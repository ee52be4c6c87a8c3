"""Suites of programs that are not laid out like HeCBench: a file says where each one is, how to build and run it."""

from __future__ import annotations

import os
import shlex
import shutil
import tomllib
from dataclasses import dataclass
from pathlib import Path

from processes import Ended, call
from sources import Command
from toolchain import Toolchain


@dataclass(frozen=True, slots=True)
class Program:
    """A program of a suite: its folder in the checkout, and shell commands that run there."""

    folder: str
    build: str
    run: str


@dataclass(frozen=True, slots=True)
class Suite:
    """The programs of a file in `suites/`, by name."""

    programs: dict[str, Program]


def read(path: Path) -> Suite:
    """Read a suite; `build` and `run` of its head apply to programs that have none, with `{name}` for the name and
    `{here}` for the folder of the file.

    Raises:
        OSError, ValueError, KeyError: It cannot be read, is no TOML, or a program lacks a command.
    """
    content = tomllib.loads(path.read_text())
    programs, here = {}, path.resolve().parent
    for name, own in content["programs"].items():
        build, run = (own.get(key, content.get(key)) for key in ("build", "run"))
        if build is None or run is None:
            raise KeyError(f"{path}: {name} has no command to {'build' if build is None else 'run'} it")
        folder = own.get("folder", name)
        programs[name] = Program(
            folder, *(one.format(name=name, here=here, flags=own.get("flags", "")) for one in (build, run))
        )
    return Suite(programs)


def build(program: Program, checkout: Path, work: Path, toolchain: Toolchain, limit_s: float) -> tuple[Ended, Command]:
    """Build a program in a copy of the checkout; return how that ended, and how to run it."""
    if not work.exists():
        shutil.copytree(checkout, work, symlinks=True)
    folder = work / program.folder
    environment = {"PATH": f"{toolchain.wrapper.parent}:{os.environ['PATH']}"}
    ended = call(["sh", "-c", program.build], folder, environment, limit_s)
    first, *rest = shlex.split(program.run)
    return ended, Command(folder, [str((folder / first).resolve()), *rest])
