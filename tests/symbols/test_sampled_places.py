"""What is shown of a sample outside the program's own code."""

from __future__ import annotations

import pytest

from ffm.results.documents.stacks import Frame, Module
from ffm.symbols.sampled_places import _place

MODULES = [Module(path="/usr/lib/libm.so.6", build_id=""), Module(path="", build_id="")]
MATHS = Frame(module=0, offset=1)
ANONYMOUS = Frame(module=1, offset=1)


def python(file: str) -> Frame:
    return Frame(module=1, offset=0, function="compute", file=file, line=7, python=True)


PACKAGE = python("/env/lib/python3.11/site-packages/numba/core/typing.py")
IMPORT = python("<frozen importlib._bootstrap>")
SCRIPT = python("/home/me/train.py")


@pytest.mark.parametrize(
    ("frames", "shown"),
    [
        ([PACKAGE, IMPORT, SCRIPT], "compute"),
        ([PACKAGE, IMPORT], "code in numba"),
        ([IMPORT, PACKAGE], "code in numba"),
        ([IMPORT], "code in Python"),
        ([MATHS, PACKAGE], "code in libm.so.6"),
        ([ANONYMOUS], "code in no file"),
        ([], "code in no file"),
    ],
    ids=["own line", "package", "an import of a package", "an import", "library", "made at run time", "nothing"],
)
def test_code_that_is_not_the_programs_own_is_named_by_its_package_or_library(frames: list[Frame], shown: str) -> None:
    assert _place(frames, MODULES, frozenset({0})).function == shown
