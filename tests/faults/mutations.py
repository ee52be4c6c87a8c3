"""Ways to damage files of results, each from a random generator, so that a seed names a mutation."""

from __future__ import annotations

import math
import random
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import orjson
import pyarrow as pa

from ffm.results.sealing import digest_of_file, sealed, take_seal

Mutation = Callable[[Path, random.Random], str]
"""Changes a file of a folder; returns what it did, in a few words."""

HUGE = (2**31 - 1, 2**31, 2**53, 2**63 - 1, 2**63, 2**64 - 1, 10**30)
TEXTS = ("", "\x1b[31mred", "a\x07b\rc\x9bd", "[/x]", "[bold]", "../../../etc/passwd", "/dev/zero", "nan", "x" * 5000)


def damage_bytes(path: Path, chance: random.Random) -> str:
    """Change the bytes of a file, as a failing disk or an editor does."""
    content = bytearray(path.read_bytes())
    size = len(content)
    at = chance.randrange(size) if size else 0
    kind = chance.choice(("flip", "flips", "cut", "extend", "zero", "noise", "move", "repeat", "empty", "utf-8"))
    if kind == "flip" and size:
        content[at] ^= 1 << chance.randrange(8)
    elif kind == "flips" and size:
        for _ in range(chance.randint(2, 50)):
            content[chance.randrange(size)] ^= 1 << chance.randrange(8)
    elif kind == "cut":
        del content[at:]
    elif kind == "extend":
        content += chance.randbytes(chance.randint(1, 5000))
    elif kind == "zero":
        end = min(at + chance.randint(1, 4096), size)
        content[at:end] = bytes(end - at)
    elif kind == "noise":
        end = min(at + chance.randint(1, 64), size)
        content[at:end] = chance.randbytes(end - at)
    elif kind == "move":
        end = min(at + chance.randint(1, 4096), size)
        part = content[at:end]
        del content[at:end]
        to = chance.randrange(len(content) + 1)
        content[to:to] = part
    elif kind == "repeat":
        content[at:at] = content[at : at + chance.randint(1, 4096)]
    elif kind == "empty":
        content.clear()
    else:
        content[at:at] = chance.choice((b"\xff", b"\xc3", b"\xed\xa0\x80", b"\x00"))
    path.write_bytes(content)
    return f"bytes: {kind}"


def other_file(path: Path, chance: random.Random) -> str:
    """Put another file of the folder in a file's place."""
    others = sorted(other for other in path.parent.iterdir() if other.is_file() and other != path)
    path.write_bytes(chance.choice(others).read_bytes())
    return "bytes: another file"


def change_document(path: Path, chance: random.Random) -> str:
    """Change one value of a document, and seal it again: as one who knows the format would."""
    content = orjson.loads(path.read_bytes())
    if isinstance(content, dict):
        take_seal(content)
    holder, key = chance.choice(list(_places(content)))
    kind = chance.choice(("number", "huge", "text", "other", "delete", "add", "repeat", "shorten", "deep", "swap"))
    value = holder[key]
    if kind == "number":
        holder[key] = chance.choice((-1, 0, 1, 7, 1000, 10**6, 0.5, -0.5, -1e9, 1e-300, 1e9, 1e308))
    elif kind == "huge":
        holder[key] = chance.choice(HUGE[:-1])
    elif kind == "text":
        holder[key] = chance.choice(TEXTS)
    elif kind == "other":
        holder[key] = chance.choice((None, True, [], {}, [1], {"a": 1}, [[]]))
    elif kind == "delete":
        del holder[key]
    elif kind == "add" and isinstance(holder, dict):
        holder["further"] = value
    elif kind == "repeat" and isinstance(value, list):
        holder[key] = value * chance.choice((2, 10, 100)) if len(value) < 200 else value * 2
    elif kind == "shorten" and isinstance(value, list):
        holder[key] = value[: len(value) // 2]
    elif kind == "deep":
        for _ in range(chance.choice((3, 30, 900, 3000))):
            value = {"parts": [value]} if isinstance(value, dict) else [value]
        holder[key] = value
    else:
        other, place = chance.choice(list(_places(content)))
        if not _holds(value, other) and not _holds(other[place], holder):
            holder[key], other[place] = other[place], value
    return f"document: {kind}" if reseal(path, content) else "document: not JSON"


def reseal(path: Path, content: Any) -> bool:
    """Write a changed document with the checksums that belong to it; False where it cannot be written as JSON."""
    if not isinstance(content, dict) or "format" not in content:  # it has none
        try:
            path.write_bytes(orjson.dumps(content))
        except TypeError:
            path.write_bytes(b"[" * 100_000)
        return True
    head = {name: content.pop(name) for name in ("format", "version") if name in content}
    checksums = content.get("checksums")
    if isinstance(checksums, dict):
        for name in checksums:
            file = content.get(name)
            if isinstance(file, str) and 0 < len(file) < 200 and (path.parent / file).is_file():
                checksums[name] = digest_of_file(path.parent / file)
    try:
        path.write_bytes(sealed(head, content, None))
    except TypeError:  # numbers beyond 64 bits, nesting beyond what the encoder takes
        path.write_bytes(b"[" * 100_000)
        return False
    return True


def change_table(path: Path, chance: random.Random) -> str:
    """Change the columns of a table, and seal all documents again."""
    with pa.OSFile(str(path), "rb") as file:
        table = pa.ipc.open_file(file).read_all()
    kind = chance.choice(
        ("value", "values", "value", "values", "type", "drop", "nulls", "rows", "order", "text", "note")
    )
    name = chance.choice(table.column_names)
    column = table.column(name).to_numpy().copy()
    if kind in ("value", "values") and len(column):
        rows = chance.sample(range(len(column)), 1 if kind == "value" else chance.randint(1, len(column)))
        column[rows] = _value(column.dtype, chance, len(column))
        table = _with(table, name, pa.array(column))
    elif kind == "type":
        to = chance.choice(("int8", "float64", "uint64", "int64", "float32"))
        with np.errstate(all="ignore"):
            table = _with(table, name, pa.array(column.astype(to)))
    elif kind == "drop":
        table = table.drop_columns([name])
    elif kind == "nulls":
        table = _with(table, name, pa.array([None] * len(column), table.schema.field(name).type))
    elif kind == "rows":
        table = chance.choice((table.slice(0, 0), table.slice(0, len(table) // 2), pa.concat_tables([table, table])))
    elif kind == "order":
        table = table.take(pa.array(chance.sample(range(len(table)), len(table)), pa.int64()))
    elif kind == "text":
        table = _with(table, name, pa.array(["text"] * len(column)))
    else:
        noted = dict(table.schema.metadata or {})
        for key, note in list(noted.items()):
            changed = bytearray(note)
            if changed:
                place = chance.randrange(len(changed))
                changed[place : place + 1] = chance.choice((b"9", b"-", b"", b"99999999", b"[", b"null"))
            noted[key] = bytes(changed)
        table = table.replace_schema_metadata(noted)
    with pa.OSFile(str(path), "wb") as file, pa.ipc.new_file(file, table.schema) as writer:
        writer.write_table(table)
    for document in path.parent.glob("*.json"):
        content = orjson.loads(document.read_bytes())
        take_seal(content)
        reseal(document, content)
    return f"table: {kind}"


def change_words(path: Path, chance: random.Random) -> str:
    """Change whole 4- or 8-byte numbers of a recording, which mean lengths, numbers and times."""
    content = bytearray(path.read_bytes())
    for _ in range(chance.choice((1, 1, 3, 20))):
        width = chance.choice((4, 8))
        filled = len(content.rstrip(b"\0")) or 1
        at = chance.randrange(0, max(filled - width, 1), 4)
        value = chance.choice((0, 1, 7, 8, 4096, 2**16, 2**31, 2**32 - 1, 2**63, 2**64 - 1, chance.randrange(2**32)))
        content[at : at + width] = (value % 2 ** (8 * width)).to_bytes(width, "little")
    path.write_bytes(content)
    return "recording: words"


def _places(content: Any) -> Iterator[tuple[Any, Any]]:
    """All (holder, key) pairs of a JSON value, few of long lists, so that all kinds of fields are as likely."""
    waiting = [content]
    while waiting:
        holder = waiting.pop()
        keys = list(holder) if isinstance(holder, dict) else list(range(len(holder)))[:3]
        for key in keys:
            yield holder, key
            if isinstance(holder[key], dict | list):
                waiting.append(holder[key])


def _holds(value: Any, part: Any) -> bool:
    """Whether a JSON value is another one, or has it inside."""
    if value is part:
        return True
    inside = value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
    return any(_holds(one, part) for one in inside)


def _value(kind: np.dtype[Any], chance: random.Random, rows: int) -> Any:
    if kind.kind == "f":
        return chance.choice((math.nan, math.inf, -1.0, 1e308))
    limits = np.iinfo(kind)
    wanted = chance.choice((-2, -1, 0, 1, rows, rows + 1, 10**6, limits.max, limits.min, limits.max // 2, *HUGE))
    return min(max(wanted, int(limits.min)), int(limits.max))


def _with(table: pa.Table, name: str, column: pa.Array) -> pa.Table:
    place = table.schema.get_field_index(name)
    return table.set_column(place, pa.field(name, column.type), column)
