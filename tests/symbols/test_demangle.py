"""Names come back as a programmer wrote them."""

from __future__ import annotations

import pytest

from ffm.symbols.demangle import demangle, without_clone_suffix


@pytest.mark.parametrize(
    ("mangled", "plain"),
    [
        ("_Z3fooi", "foo(int)"),
        ("_Z3fooi.cold", "foo(int)"),
        ("_Z3fooi.isra.0.cold", "foo(int)"),
        ("_ZN6thrust4copyIPiEEvT_", "void thrust::copy<int*>(int*)"),
        ("main", "main"),
        ("cuMemFree_v2", "cuMemFree_v2"),
        ("_Znot_a_name", "_Znot_a_name"),
        ("helper.part.0", "helper"),
        ("helper.constprop.0.isra.1", "helper"),
        ("names.with.dots", "names.with.dots"),
    ],
)
def test_demangling(mangled: str, plain: str) -> None:
    assert demangle(mangled) == plain


@pytest.mark.parametrize(
    "name",
    ["foo(int) [clone .cold]", "foo(int) (.cold)", "foo(int) (.isra.0.cold)", "foo(int) [clone .isra.0] [clone .cold]"],
)
def test_both_spellings_of_a_clone_are_dropped(name: str) -> None:
    assert without_clone_suffix(name) == "foo(int)"
