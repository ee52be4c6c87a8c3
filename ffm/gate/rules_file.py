"""Reading the gate's configuration: `ffm.toml`, or the table `[tool.ffm]` of `pyproject.toml`."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path
from typing import Any

import msgspec

from ffm.errors import FfmError
from ffm.gate.rules import Rules
from ffm.regular_file import read_regular

OWN_FILE, PROJECT_FILE = "ffm.toml", "pyproject.toml"
MOST_BYTES = 1 << 24

Keys = tuple[str | int, ...]
"""The way to a value: names of keys, and indices of lists."""

_TABLE = re.compile(r"\s*(\[\[?)\s*([^\[\]]+?)\s*\]\]?\s*(?:#.*)?")
_KEY = re.compile(r"\s*([\w.\"'-]+)\s*=")
_UNKNOWN = re.compile(r"Object contains unknown field `(.*?)`")
_MISSING = re.compile(r"Object missing required field `(.*?)`")
_WHERE = re.compile(r" - at `\$(.*)`\Z")
_STEP = re.compile(r"\.([\w-]+)|\[(\d+)\]")


class RulesError(FfmError):
    """The configuration of the gate cannot be read."""

    help = "Correct it, or name another with --config."


class NoRulesError(RulesError):
    """The configuration of the gate is not there, or may not be read."""

    help = "Name another with --config."


def read_rules(path: Path | None, folder: Path) -> tuple[Rules, Path]:
    """Return the rules in a file, or in the configuration of a folder; also the folder that they belong to.

    Without a file, `ffm.toml` counts, else `pyproject.toml` if it has the table. Without either, nothing is allowed.

    Raises:
        RulesError: The file does not exist, or is wrong: one sentence with file, line and key.
    """
    if path is not None:
        found = _read(path)
        return (Rules() if found is None else found), path.parent
    for name in (OWN_FILE, PROJECT_FILE):
        if (folder / name).is_file() and (found := _read(folder / name)) is not None:
            return found, folder
    return Rules(), folder


def _read(path: Path) -> Rules | None:
    """Return the rules in a file; None if it is a project's file without the table."""
    try:
        text = read_regular(path, MOST_BYTES).decode()
        content: Any = tomllib.loads(text)
    except FileNotFoundError:
        raise NoRulesError(f"the configuration {path} does not exist.") from None
    except OSError as error:
        raise NoRulesError(f"the configuration {path} cannot be read: {error.strerror}.") from error
    except UnicodeDecodeError as error:
        line = error.object[: error.start].count(b"\n") + 1
        raise RulesError(f"{path}, line {line}: it is not TOML, because it is not UTF-8.") from error
    except tomllib.TOMLDecodeError as error:
        raise RulesError(f"{path} is not TOML: {error}.") from error
    inside: Keys = ("tool", "ffm") if path.name == PROJECT_FILE else ()
    for key in inside:
        if not isinstance(content, dict) or key not in content:
            return None
        content = content[key]
    try:
        return msgspec.convert(content, Rules)
    except msgspec.ValidationError as error:
        message, keys = _explained(str(error))
        named = "".join(f"[{key + 1}]" if isinstance(key, int) else f".{key}" for key in keys).lstrip(".")
        line = line_of(text, inside + keys)
        raise RulesError(f"{path}, line {line}: {named + ': ' if named else ''}{message}.") from error


def _explained(message: str) -> tuple[str, Keys]:
    """Return what is wrong, and with which value."""
    where = _WHERE.search(message)
    steps = _STEP.findall(where[1]) if where else []
    keys: Keys = tuple(int(index) if index else name for name, index in steps)
    text = message[: where.start()] if where else message
    if unknown := _UNKNOWN.fullmatch(text):
        return "there is no such key", (*keys, unknown[1])
    if missing := _MISSING.fullmatch(text):
        return f"the key {missing[1]} is missing", keys
    return (text[:1].lower() + text[1:]).replace(" | null`", "`"), keys  # TOML has no null


def line_of(text: str, keys: Keys) -> int:
    """Return the line, from 1, that gives a value its key; else that of the innermost table around it."""
    table: Keys = ()
    lists: dict[str, int] = {}
    best, depth = 1, 0
    for number, line in enumerate(text.splitlines(), 1):
        if header := _TABLE.fullmatch(line):
            table = _parts(header[2])
            if header[1] == "[[":
                lists[header[2]] = lists.get(header[2], -1) + 1
                table = (*table, lists[header[2]])
            here = table
        elif key := _KEY.match(line):
            here = (*table, *_parts(key[1]))
        else:
            continue
        if len(here) > depth and keys[: len(here)] == here:
            best, depth = number, len(here)
    return best


def _parts(name: str) -> Keys:
    return tuple(part.strip().strip("\"'") for part in name.split("."))
