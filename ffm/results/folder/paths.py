"""The results folder of an application: where each file is."""

from __future__ import annotations

import os
import re
import shutil
from dataclasses import dataclass
from pathlib import Path

from ffm.errors import DocumentError
from ffm.regular_file import open_regular

STAGES = ("baseline", "tracing", "memory", "sync-use", "analysis")
"""In the order in which they feed each other."""

_PROGRAMS = (b"\x7fELF", b"#!")
"""How the files of programs and of scripts begin."""


@dataclass(frozen=True, slots=True)
class ResultsFolder:
    """Paths inside `results/<application>/`."""

    root: Path

    def document(self, stage: str) -> Path:
        """Return the JSON document of a stage."""
        return self.root / f"{stage}.json"

    def table(self, name: str) -> Path:
        """Return a columnar file, such as `tracing-events`."""
        return self.root / f"{name}.arrow"

    def output(self, stage: str) -> Path:
        """Return the file with what the program wrote in a stage, or the `corrected` or `uncorrected` one did."""
        return self.root / f"{stage}.log"

    @property
    def standard_input(self) -> Path:
        """The copy of what the program reads from its standard input, if that was no file."""
        return self.root / "standard-input"

    def recordings(self, stage: str) -> Path:
        """Return the folder of a stage's raw recordings."""
        return self.root / "recordings" / stage

    def make(self) -> None:
        """Create the folder if it does not exist.

        Raises:
            DocumentError: It cannot be created, or written.
        """
        try:
            self.root.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise self._refusal(error) from error
        if not os.access(self.root, os.W_OK | os.X_OK):
            raise DocumentError(f"The results folder {self.root} may not be written. Choose another with --results.")

    def fresh_recordings(self, stage: str) -> Path:
        """Recreate the folder of a stage's raw recordings, without what an earlier run left in it.

        Raises:
            DocumentError: The folder cannot be written, or is a link, whose target is not ours to remove.
        """
        folder = self.recordings(stage)
        for link in (folder.parent, folder):
            if link.is_symlink():
                raise DocumentError(
                    f"{link} is a symbolic link, which is not followed. Remove it, or choose another "
                    "folder with --results."
                )
        try:
            shutil.rmtree(folder, ignore_errors=True)
            folder.mkdir(parents=True)
        except OSError as error:
            raise self._refusal(error) from error
        return folder

    def _refusal(self, error: OSError) -> DocumentError:
        return DocumentError(
            f"The results folder {self.root} cannot be written ({error.strerror}). Choose another with --results."
        )


def application_name(command: list[str]) -> str:
    """Name the results of a command after its program.

    `./cumf_als 1 2` is `cumf_als`, `python train.py` is `train`, and `mpirun -n 4 ./app` is `app`.
    """
    launched = range(1, len(command)) if _is_installed(command[0]) else ()
    for place in (0, *launched):
        script = python_script(command[place:])
        if script is not None:
            return script.removesuffix(".py").rpartition("/")[2]
        if place > 0 and is_program(Path(command[place])):
            return Path(command[place]).name
    return Path(command[0]).name


def _is_installed(program: str) -> bool:
    """Whether a program lies where the shell looks for commands, as launchers do and programs under work do not."""
    found = shutil.which(Path(program).name)
    return found is not None and found == shutil.which(program)


def is_program(path: Path) -> bool:
    """Whether this file is a program or a script with an interpreter, which a launcher may run."""
    try:
        with open_regular(path) as file:
            return file.read(len(_PROGRAMS[0])).startswith(_PROGRAMS)
    except (OSError, ValueError):
        return False


def python_script(command: list[str]) -> str | None:
    """Return the script, or the module after `-m`, that a command runs with a Python interpreter; otherwise None."""
    if not re.fullmatch(r"python[\d.]*", Path(command[0]).name):
        return None
    words = iter(command[1:])
    for word in words:
        if word == "-m":
            return next(words, None)
        if word in ("-W", "-X", "--check-hash-based-pycs"):
            next(words, None)
        elif word in ("-", "-c"):
            return None
        elif not word.startswith("-"):
            return word
    return None
