"""The workflow's settings, checked before anything is derived from them, because on a command line they can be any
text."""

from __future__ import annotations

import math
import shlex
import shutil
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ffm.errors import FfmError
from ffm.instrument.session.portion import Asked, PortionError, read_duration, read_portion
from ffm.instrument.session.standard_input import require_input
from ffm.results.folder.paths import application_name, is_program, python_script
from ffm.vgpu.paths import sample

NAMES = (
    "accept_status",
    "app",
    "arguments",
    "for",
    "iterations",
    "memory",
    "ordinary_memory",
    "ranges",
    "results",
    "sample",
    "scheduler",
    "sites",
    "stdin",
    "timeout",
    "watch",
    "window",
)
"""All existing settings."""

LARGEST_STATUS = 255

_BRACES = frozenset("{}")

_YES_OR_NO = {"yes": True, "true": True, "no": False, "false": False}


class SettingsError(FfmError):
    """A setting is missing, of the wrong type, or unknown."""


@dataclass(frozen=True, slots=True)
class Settings:
    """What to measure, and how."""

    command: list[str]
    files: list[str]
    """What the results depend on: the program, programs and scripts among its arguments (as behind `mpirun`), and what
    it reads from its standard input. If the program does not exist, `ffm stage` says so in one sentence.
    """
    results: str
    """The folder."""
    timeout_s: float | None
    """After how many seconds each run is stopped."""
    accepted_status: int
    """The exit code with which the program may end instead of 0."""
    stdin: str
    """The file that the program reads from its standard input in each run; empty for nothing."""
    memory_options: list[str]
    """Further options of stage 3."""
    sites: str
    """The file with the sites to which stage 3 is limited; empty for all."""
    portion: Asked | None
    """What is measured of the run; None for all."""
    portion_options: list[str]
    """Those of stage 2 that say what is measured of the run."""
    for_s: float | None
    """For how long stages 1 and 2 measure it, and those after it as much; None until it ends."""
    scheduler: str
    """The address of the Dask scheduler whose workers share stage 5; empty for this machine alone."""
    memory_mib: int | None
    """How much memory stage 5 takes before it keeps columns in files; None for a share of what is free."""

    @property
    def analysis_options(self) -> list[str]:
        """Options of stage 5."""
        limit = [] if self.memory_mib is None else [f"--memory={self.memory_mib}"]
        return ([f"--scheduler={self.scheduler}"] if self.scheduler else []) + limit

    @property
    def lasting(self) -> list[str]:
        """The option of stages 1 and 2 that says for how long."""
        return [] if self.for_s is None else ["--for", f"{self.for_s:g}s"]

    @property
    def limits(self) -> list[str]:
        """Options of each run."""
        timeout = [] if self.timeout_s is None else ["--timeout", f"{self.timeout_s:g}"]
        accepted = ["--accept-status", str(self.accepted_status)] if self.accepted_status else []
        return timeout + accepted + ([f"--stdin={self.stdin}"] if self.stdin else [])


def read_settings(given: Mapping[str, Any]) -> Settings:
    """Check the settings of a measurement, which Snakemake read from files and the command line.

    Raises:
        SettingsError: One sentence about the first invalid setting.
    """
    unknown = sorted(str(name) for name in given if name not in NAMES)
    if unknown:
        raise SettingsError(f"there is no setting {unknown[0]}; the settings are {', '.join(NAMES)}.")
    command = _command(given)
    watch = given.get("watch", "pages")
    if watch not in ("pages", "trace"):
        raise SettingsError(f"watch is pages or trace, not {watch}.")
    ordinary = _YES_OR_NO.get(str(given.get("ordinary_memory", "yes")).lower())
    if ordinary is None:
        raise SettingsError(f"ordinary_memory is yes or no, not {given['ordinary_memory']}.")
    sites = _text(given, "sites")
    stdin = _stdin(given)
    return Settings(
        command,
        _files(command, stdin),
        _results(given, command),
        _timeout(given),
        _accepted(given),
        stdin,
        ["--watch", watch] * (watch != "pages") + ["--no-ordinary-memory"] * (not ordinary) + _limited(sites),
        sites,
        *_portion(given),
        _for(given),
        _text(given, "scheduler"),
        _memory(given),
    )


def _limited(sites: str) -> list[str]:
    return ["--sites", sites] if sites else []


def _for(given: Mapping[str, Any]) -> float | None:
    if "for" not in given:
        return None
    try:
        return read_duration(_text(given, "for"))
    except PortionError as error:
        raise SettingsError(str(error)) from error


def _portion(given: Mapping[str, Any]) -> tuple[Asked | None, list[str]]:
    """Return what is measured of the run, and the options that say so: a window, or `ranges` and `iterations=1/N`."""
    options = {"--window": "window", "--ranges": "ranges", "--iterations": "iterations"}
    found = {option: _text(given, name) for option, name in options.items() if name in given}
    try:
        portion = read_portion(found.get("--window"), found.get("--ranges"), found.get("--iterations"))
    except PortionError as error:
        raise SettingsError(str(error)) from error
    if portion is not None and given.get("sites"):
        raise SettingsError("measure either a portion of the run, or chosen sites of all of it, not both.")
    return portion, [f"{option}={value}" for option, value in found.items()]


def _command(given: Mapping[str, Any]) -> list[str]:
    """Return the words of the program to measure."""
    try:
        if "app" in given or "sample" not in given:
            words = shlex.split(_text(given, "app"))
        else:
            # By its whole path, so that the stored command means the same in every folder.
            program = sample(_text(given, "sample")).absolute()
            words = [str(program), *shlex.split(_text(given, "arguments"))]
    except ValueError as error:
        raise SettingsError(
            f"the program and its arguments cannot be split into words: {error}. (Snakemake removes quotes from the "
            "value; write a backslash before a space within a word.)"
        ) from error
    if not words or not words[0]:
        raise SettingsError("name the program to measure: snakemake --config app=./program")
    return words


def _stdin(given: Mapping[str, Any]) -> str:
    file = _text(given, "stdin")
    if file == "-":
        raise SettingsError("stdin cannot be `-`, which is for `ffm run --stdin -`: name a file.")
    if file:
        require_input(Path(file))
    return file


def _files(command: list[str], stdin: str) -> list[str]:
    scripts = (python_script(command[place:]) for place in range(len(command)))
    launched = (word for word in command[1:] if is_program(Path(word)))
    named = (shutil.which(command[0]), *scripts, *launched, stdin)
    found = [file for file in dict.fromkeys(named) if file and Path(file).is_file()]
    for file in found:
        if set(file) & _BRACES:
            raise SettingsError(
                f"Snakemake takes braces in names of files for wildcards, and {file} has some. Name it by a "
                "symbolic link without them, or run the stages by hand (`ffm stage baseline ...`)."
            )
    return found


def _text(given: Mapping[str, Any], name: str) -> str:
    """Return a text; Snakemake converts texts that look like numbers to numbers."""
    value = given.get(name)
    if value is None:
        return ""
    if isinstance(value, bool) or not isinstance(value, (str, int, float)):
        raise SettingsError(f"{name} is a text, not {value}.")
    if any(ord(character) < ord(" ") for character in str(value)):
        if name in ("app", "arguments"):
            raise SettingsError(
                f"{name} contains a line break or another control character: {value!r}. Call the program from a "
                "script, and measure that."
            )
        raise SettingsError(f"{name} contains a line break or another control character: {value!r}. Use none.")
    return str(value)


def _results(given: Mapping[str, Any], command: list[str]) -> str:
    folder = _text(given, "results") if "results" in given else str(Path("results") / application_name(command))
    if not folder:
        raise SettingsError("results is empty: name a folder, or leave it out.")
    if set(folder) & _BRACES:
        raise SettingsError(
            f"the results would go to {folder}, but Snakemake takes braces in names of files for wildcards. Choose "
            "another folder: results=FOLDER."
        )
    return folder


def _timeout(given: Mapping[str, Any]) -> float | None:
    if "timeout" not in given:
        return None
    value = given["timeout"]
    try:
        seconds = math.nan if isinstance(value, bool) else float(value)
    except (TypeError, ValueError):
        seconds = math.nan
    if not 0 < seconds < math.inf:
        raise SettingsError(f"timeout is a number of seconds above 0, not {value}.")
    return seconds


def _memory(given: Mapping[str, Any]) -> int | None:
    if "memory" not in given:
        return None
    value = given["memory"]
    if isinstance(value, bool) or not str(value).isdecimal():
        raise SettingsError(f"memory is a number of MiB from 0, not {value}.")
    return int(value)


def _accepted(given: Mapping[str, Any]) -> int:
    if "accept_status" not in given:
        return 0
    value = given["accept_status"]
    if isinstance(value, bool) or not str(value).isdecimal() or int(value) > LARGEST_STATUS:
        raise SettingsError(f"accept_status is an exit code from 0 to {LARGEST_STATUS}, not {value}.")
    return int(value)
