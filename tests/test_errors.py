"""Every error of ffm derives from one root, and says what to do next."""

from __future__ import annotations

import ast
import builtins
import importlib
import re
from collections.abc import Iterator
from pathlib import Path

from ffm.errors import CauseError, FfmError

ROOT = Path(__file__).parents[1]

ADVICE = re.compile(
    r"(?:^|[.:;,(]\s|\band |\bor )"
    r"(?:agree|allow|ask|build|call|change|check|choose|compare|copy|correct|export|fix|free|give|install|leave|look|mark"
    r"|measure|name|rebuild|record|remove|run|see|start|trace|try|use|wait|write)\b"
    r"|`[^`]*` (?:lists|gives|names|says|shows)"
    r"|\bnumbered\b|\bmust\b|, such as\b|\boperations 1 to\b|, not X|are not 1/N|\bare X\.|\bbegin at\b"
    r"|has a line break",
    re.IGNORECASE,
)
"""A clause that begins with an imperative, a command that tells more, or what would be right instead."""

WITHOUT_ADVICE = {
    "nothing was run.": "the user did not agree",
    "here is nothing to": "the program does not use the GPU: there is nothing that ffm could do",
    "so there is no path to show": "the same",
    "nothing to apply: no correction is expected": "which site is the dearest, and why it stays, follows",
    "nothing to apply: no selected site": "why, and which command tells more, follows",
    "X is in use by X. X": "whether to wait, or what to remove, follows",
}
"""Messages that leave nothing to do, and why."""


def test_all_errors_have_one_root() -> None:
    """Those of the outside world (a full disk, a name that is no number) keep their own classes."""
    own = {name for name, kind in classes() if not issubclass(kind, FfmError)}
    assert own == set()


def test_each_class_of_errors_says_what_to_do_or_has_the_message_say_it() -> None:
    silent = [
        f"{where} {text}"
        for where, kind, text in raised()
        if not (issubclass(kind, CauseError) or kind.help or advises(text))
    ]
    assert silent == []


def test_a_cause_has_no_help_of_its_own() -> None:
    """Whoever catches it says where that was, and what to do next."""
    assert {name for name, kind in classes() if issubclass(kind, CauseError) and kind.help} == set()


def test_the_message_comes_before_the_help_of_its_class() -> None:
    class LostError(FfmError):
        help = "Look behind you."

    error = LostError("./a is lost.")
    assert (error.what, str(error)) == ("./a is lost.", "./a is lost. Look behind you.")
    assert str(FfmError("./a is lost: look up.")) == "./a is lost: look up."


def advises(text: str) -> bool:
    """Return whether a message says what to do. One without a text of its own passes on that of a function or cause."""
    return not text or ADVICE.search(text) is not None or any(known in text for known in WITHOUT_ADVICE)


def classes() -> Iterator[tuple[str, type]]:
    """Yield each class of ffm whose name says that it is an error."""
    for path in sorted((ROOT / "ffm").rglob("*.py")):
        names = [
            node.name
            for node in ast.parse(path.read_text()).body
            if isinstance(node, ast.ClassDef) and node.name.endswith("Error")
        ]
        module = ".".join(path.relative_to(ROOT).with_suffix("").parts)
        for name in names:
            yield name, getattr(importlib.import_module(module), name)


def raised() -> Iterator[tuple[str, type[FfmError], str]]:
    """Yield where ffm makes an error, its class, and the constant parts of its message."""
    kinds = {name: kind for name, kind in classes() if issubclass(kind, FfmError)}
    for path in sorted((ROOT / "ffm").rglob("*.py")):
        for node in ast.walk(ast.parse(path.read_text())):
            match node:
                case ast.Call(func=ast.Name(id=name), args=[_, *_]) if name in kinds and not hasattr(builtins, name):
                    yield f"{path.relative_to(ROOT)}:{node.lineno}", kinds[name], constants(node)


def constants(call: ast.Call) -> str:
    """Return the texts in a call's arguments, with a letter for each value between them."""
    parts = []
    for node in ast.walk(call):
        match node:
            case ast.JoinedStr(values=values):
                parts.append("".join(part.value if isinstance(part, ast.Constant) else "X" for part in values))
            case ast.Constant(value=str(text)):
                parts.append(text)
    return "\n".join(parts)
