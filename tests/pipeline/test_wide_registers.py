"""512-bit registers under the trace watch, which loses the upper halves of some."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from tests.conftest import Ffm

PROGRAM = Path(__file__).parent / "programs" / "wide.cu"

pytestmark = pytest.mark.skipif("avx512f" not in Path("/proc/cpuinfo").read_text(), reason="this CPU has no AVX-512")


@pytest.fixture
def measure(ffm: Ffm, build_program: Callable[[Path], Path], tmp_path: Path) -> Callable[[str, str], tuple[int, str]]:
    """Measure the program up to the memory stage; return how that ended, and what was said."""

    def run(registers: str, watch: str) -> tuple[int, str]:
        program = build_program(PROGRAM)
        for stage in (["baseline"], ["tracing"], ["memory", "--watch", watch]):
            done = ffm("stage", *stage, "--results", tmp_path, "--timeout", 60, "--", program, registers)
        return done.code, done.err

    return run


@pytest.mark.parametrize(("registers", "watch"), [("low", "pages"), ("high", "trace"), ("library", "trace")])
def test_registers_that_are_kept_may_be_used(
    measure: Callable[[str, str], tuple[int, str]], registers: str, watch: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("GLIBC_TUNABLES", "glibc.malloc.tcache_count=0")
    code, said = measure(registers, watch)
    assert code == 0, said


def test_what_a_program_says_of_the_processor_itself_takes_precedence(
    measure: Callable[[str, str], tuple[int, str]], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("GLIBC_TUNABLES", "glibc.cpu.hwcaps=-AVX512CD")
    code, said = measure("library", "trace")
    assert code != 0 and "GLIBC_TUNABLES" in said


def test_a_program_whose_results_would_be_wrong_is_refused(measure: Callable[[str, str], tuple[int, str]]) -> None:
    code, said = measure("low", "trace")
    assert code != 0
    assert "AVX-512" in said and "--watch pages" in said and "GLIBC_TUNABLES" in said
