"""What a driver function waits for and orders is said in `catalogue.toml`, and nobody else decides that by its name."""

from __future__ import annotations

import io
import re
import tokenize
from pathlib import Path

from ffm.driver.catalogue import Awaits, Effect, load_catalogue

ROOT = Path(__file__).parents[2]

MEANT = {
    name
    for function in load_catalogue().functions
    if function.awaits is not Awaits.NOTHING or function.effect in (Effect.RECORD_EVENT, Effect.WAIT_EVENT)
    for name in (function.name, function.base)
}
"""The functions that wait, ask, record and order. Whoever lists some of them by name says again what they do."""

CALLERS = {
    "ffm/instrument/native/collector/gpu_times.c",
    "ffm/instrument/native/collector/readback.c",
    "ffm/instrument/native/correction/foundation/driver.h",
    "ffm/instrument/probing/latency_probe.py",
    "ffm/instrument/probing/occupation.py",
    "ffm/instrument/probing/probe.py",
}
"""Code that calls the driver itself. It needs one exported form, whose parameters have the types that it passes. The
catalogue has the roles of parameters, but not their types.
"""

OTHERS = {
    "ffm/driver/catalogue.toml": "says it",
    "ffm/driver/versions.toml": "since which version of CUDA each exported name exists, as its headers list them",
    "ffm/driver/analysis.py": "where the search in a driver's file begins: calls that always wait for a busy GPU",
    "ffm/sources/meanings.py": "which row of the catalogue a function of the runtime or of OpenCL has",
}


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
    return set(re.findall(r"\bcu[A-Z]\w*", code_of(path))) & MEANT


def test_only_the_catalogue_and_who_calls_them_name_functions_that_wait_or_order() -> None:
    suffixes = (".py", ".c", ".h", ".js", ".toml", ".map")
    sources = [path for path in (ROOT / "ffm").rglob("*") if path.suffix in suffixes]
    own = [path for path in sources if not path.is_relative_to(ROOT / "ffm/vgpu")]  # that one is a driver
    assert {path.relative_to(ROOT).as_posix() for path in own if named_in(path)} == CALLERS | set(OTHERS)


def test_who_calls_the_driver_compares_no_names() -> None:
    """A name stands only where the function is looked up."""
    for caller in sorted(CALLERS):
        code = code_of(ROOT / caller)
        assert not re.search(r"\b(ffm_is|ffm_is_named|strn?cmp|startswith|fullmatch|match)\(", code), caller
        assert not set(re.findall(r'(?:==|!=|\bin\b) *\(?"(cu\w+)', code)) & MEANT, caller
