"""When the kernels are compiled, and where compiled code is kept."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from ffm.model.compiled import PLAIN_ROWS

ROOT = Path(__file__).parents[2]

ANALYSE = """
import sys
sys.path[:0] = [{tests!r}, {root!r}]
# An editable installation would lead back to the checkout.
sys.meta_path[:] = [finder for finder in sys.meta_path if type(finder).__name__ != "ScikitBuildRedirectingFinder"]
from timelines import UNNECESSARY, Row, timeline
import numpy as np
from ffm.model.estimators.carry import carry
rows = [Row(wait=2, gap=1, problem=UNNECESSARY)] * 10
table = timeline(rows)
if {large}:
    from ffm.model.timeline import Timeline
    table = Timeline(*(np.tile(getattr(table, name), {repeat}) for name in Timeline.__dataclass_fields__))
print(carry(table, np.ones(len(table), np.bool_)), "numba" in sys.modules)
"""


def analyse(*, large: bool, root: Path = ROOT, **environment: str) -> list[str]:
    code = ANALYSE.format(tests=str(ROOT / "tests/model"), root=str(root), large=large, repeat=PLAIN_ROWS // 10 + 1)
    answer = subprocess.run(
        [sys.executable, "-c", code],
        env=os.environ | {"PYTHONDONTWRITEBYTECODE": "1"} | environment,
        capture_output=True,
        text=True,
        check=True,
    )
    return answer.stdout.split()


def test_small_tables_do_not_wait_for_numba() -> None:
    assert analyse(large=False) == ["10.0", "False"]


def test_large_tables_are_compiled() -> None:
    assert analyse(large=True) == [str(float(PLAIN_ROWS + 10)), "True"]


def test_compiled_code_has_a_place_where_package_and_home_cannot_be_written(tmp_path: Path) -> None:
    """As in an installation owned by another account. Files instead of folders stop even the superuser."""
    package = tmp_path / "installed" / "ffm"
    for path in (*(ROOT / "ffm").glob("*.py"), *(ROOT / "ffm/model").rglob("*.py")):
        copy = package / path.relative_to(ROOT / "ffm")
        copy.parent.mkdir(parents=True, exist_ok=True)
        copy.write_bytes(path.read_bytes())
    (package / "model" / "__pycache__").write_text("a file where a folder should be")
    (tmp_path / "home").write_text("a file where a folder should be")
    temporary = tmp_path / "temporary"
    temporary.mkdir()
    answer = analyse(
        large=True,
        root=package.parent,
        HOME=str(tmp_path / "home"),
        XDG_CACHE_HOME=str(tmp_path / "home" / "cache"),
        TMPDIR=str(temporary),
    )
    assert answer[1] == "True"
    assert list(temporary.rglob("*.nbi"))
    [folder] = temporary.iterdir()
    assert folder.stat().st_mode & 0o777 == 0o700


@pytest.mark.parametrize("planted", ["folder for all", "link", "folder of another user"])
def test_no_cache_is_believed_that_another_user_could_have_made(tmp_path: Path, planted: str) -> None:
    """What lies in such a folder is executed."""
    folder = tmp_path / f"ffm-cache-{os.getuid()}"
    target = folder
    if planted == "link":
        target = tmp_path / "elsewhere"
        folder.symlink_to(target)
    target.mkdir()
    target.chmod(0o777 if planted == "folder for all" else 0o700)
    if planted == "folder of another user":
        if os.geteuid() != 0:
            pytest.skip("only the superuser can give a folder away")
        os.chown(folder, 12345, 12345)
    (tmp_path / "home").write_text("a file where a folder should be")
    code = "from ffm.cache import private_cache; print(private_cache())"
    asked = subprocess.run(
        [sys.executable, "-c", code],
        env=os.environ | {"TMPDIR": str(tmp_path), "HOME": str(tmp_path / "home"), "XDG_CACHE_HOME": ""},
        capture_output=True,
        text=True,
        check=True,
    )
    assert asked.stdout.strip() == "None"


def printed(script: str, folder: Path) -> str:
    """Run a script with modules in a folder, and the compiled code in its `cache`."""
    environment = {"PYTHONPATH": str(folder), "NUMBA_CACHE_DIR": str(folder / "cache")}
    command = [sys.executable, "-B", "-c", script]
    return subprocess.run(
        command, env=os.environ | environment, capture_output=True, text=True, check=True
    ).stdout.strip()


OFTEN = """import sys
from ffm.model.compiled import PLAIN_ROWS, run
import passes
for _ in range(12):
    assert run(passes.twice, PLAIN_ROWS, 2) == 4
    print(int("numba" in sys.modules), end="")
"""


def test_a_kernel_is_compiled_once_small_tables_have_taken_as_long_as_that_takes(tmp_path: Path) -> None:
    """Ten of 20,000 rows where it was never compiled, and one where compiled code only has to be loaded."""
    (tmp_path / "passes.py").write_text("def twice(one): return 2 * one\n")
    assert printed(OFTEN, tmp_path) == "000000000011"
    assert printed(OFTEN, tmp_path) == "011111111111"


LESS = """from __future__ import annotations
from rows import {0} as Rows


def less(rows: Rows) -> int: return rows.end - rows.begin
"""
PASSES = """from limits import LIMIT
from parts import add


def double(): return 2 * LIMIT
def twice(one): return 2 * add(one)
"""
SCRIPT = """from ffm.model.compiled import compiled
import less
import passes
print(compiled(passes.double)(), compiled(passes.twice)(1), compiled(less.less)(less.Rows(begin=1, end=43)))
"""


@pytest.mark.thorough
def test_compiled_code_is_renewed_when_something_of_another_file_changes(tmp_path: Path) -> None:
    """A constant, a function, the order of a tuple's fields; then the tuple's name. Numba itself asks only for the
    kernel's own file.
    """
    (tmp_path / "passes.py").write_text(PASSES)
    (tmp_path / "less.py").write_text(LESS)
    written = (tmp_path / "less.py").stat()
    for limit, more, name, fields, answers in (
        (1, 1, "Rows", "begin: int; end: int", "2 4 42"),
        (21, 20, "Rows", "end: int; begin: int", "42 42 42"),
        (21, 20, "Part", "end: int; begin: int", "42 42 42"),
    ):
        (tmp_path / "limits.py").write_text(f"LIMIT = {limit}\n")
        inner = f"from ffm.model.compiled import inner\n\n\n@inner\ndef add(one): return one + {more}\n"
        (tmp_path / "parts.py").write_text(inner)
        (tmp_path / "rows.py").write_text(f"from typing import NamedTuple\n\n\nclass {name}(NamedTuple): {fields}\n")
        (tmp_path / "less.py").write_text(LESS.format(name))
        os.utime(tmp_path / "less.py", ns=(written.st_atime_ns, written.st_mtime_ns))
        assert printed(SCRIPT, tmp_path) == answers
        assert list((tmp_path / "cache").rglob("*.nbc"))
