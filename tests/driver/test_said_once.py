"""Only `catalogue.toml` says what a driver function waits for and orders; no code decides that by its name."""

from __future__ import annotations

import functools
import io
import re
import tokenize
from pathlib import Path

from ffm.driver.catalogue import load_catalogue
from ffm.driver.vocabulary import Awaits, Effect

ROOT = Path(__file__).parents[2]

NAMES = {name for function in load_catalogue().functions for name in (function.name, function.base)}
MEANT = {
    name
    for function in load_catalogue().functions
    if function.awaits is not Awaits.NOTHING or function.effect is not Effect.NONE
    for name in (function.name, function.base)
}
"""The functions that wait, ask, record, order, launch or end something. Whoever lists some of them by name says again
what they do.
"""

ENTRY_POINTS = {"cuGetProcAddress", "cuGetProcAddress_v2"}
"""Agent and examination ask these what else there is."""

CATALOGUE = "ffm/driver/catalogue.toml"

NAMING = {
    CATALOGUE: "says what they do",
    "ffm/doctor/diagnosis.py": "says what cuInit answered",
    "ffm/doctor/subject.py": "says what cuInit answered",
    "ffm/instrument/agent/entry_points.js": "asks what else there is",
    "ffm/report/frameworks.py": "advises to call them",
    "ffm/report/remedies/transfer_advice.py": "says which copies have no asynchronous form",
    "ffm/symbols/buffer_names.py": "looks for them in the text of programs",
}
"""Who may name functions of the driver, and what for."""


@functools.cache
def code_of(path: Path) -> str:
    """Return a file without comments and docstrings."""
    text = path.read_text()
    if path.suffix == ".py":
        tokens = tokenize.generate_tokens(io.StringIO(text).readline)
        return "\n".join(
            token.line[: token.end[1]]
            for token in tokens
            if token.type in (tokenize.STRING, tokenize.NAME) and not token.string.startswith('"""')
        )
    text = re.sub(r"/\*.*?\*/", "", text, flags=re.DOTALL)
    return re.sub(r"^\s*(#|//) .*", "", text, flags=re.MULTILINE) if path.suffix != ".h" else text


def named_in(path: Path) -> set[str]:
    return set(re.findall(r"\bcu[A-Z]\w*", code_of(path)))


@functools.cache
def own_sources() -> list[Path]:
    """Return all sources of ffm but those of the virtual GPU, which is a driver."""
    suffixes = (".py", ".c", ".h", ".js", ".toml", ".map", ".def")
    sources = [path for path in (ROOT / "ffm").rglob("*") if path.suffix in suffixes]
    return [path for path in sources if not path.is_relative_to(ROOT / "ffm/vgpu")]


def test_only_the_catalogue_names_functions_that_wait_order_or_end_something() -> None:
    assert [path for path in own_sources() if named_in(path) & MEANT] == [ROOT / CATALOGUE]


def test_whoever_else_names_a_function_of_the_driver_has_a_reason() -> None:
    known = NAMES | load_catalogue().left_out
    naming = {path.relative_to(ROOT).as_posix() for path in own_sources() if named_in(path) & known}
    assert naming == set(NAMING)


def test_only_the_catalogue_says_what_the_calls_of_other_interfaces_do() -> None:
    catalogue = load_catalogue()
    calls = {*catalogue.same_as, *catalogue.same_family}
    for path in own_sources():
        if path != ROOT / CATALOGUE and not path.is_relative_to(ROOT / "ffm/report"):
            assert not calls & set(re.findall(r'"(\w+)"', code_of(path))), path


def test_nobody_tells_calls_apart_by_name() -> None:
    for path in own_sources():
        code = code_of(path)
        compared = re.findall(r'(?:==|!=|\bin\b|\w*cmp\(|startswith\(|match\() *\(?[^"\n]{0,40}"(cu[A-Z]\w*)', code)
        assert not [name for name in compared if any(known.startswith(name) for known in NAMES - ENTRY_POINTS)], path


def test_every_purpose_that_ffm_calls_for_is_used() -> None:
    code = "\n".join(code_of(path) for path in own_sources() if path.suffix != ".toml")
    words = set(re.findall(r"\w+", code))
    for purpose in load_catalogue().own_calls:
        assert f'"{purpose}"' in code or {purpose.upper(), f"FFM_OWN_CALL_{purpose.upper()}"} & words, purpose
