"""Native and Python frames joined into one stack, and Cython's names."""

from __future__ import annotations

import pytest

from ffm.symbols.python_frames import Native, Python, cython_name, join

EVALUATION = "_PyEval_EvalFrameDefault"


def shown(native: list[str], python: str, *, complete: bool = True) -> str | None:
    """The joined stack as a word: native frames by their names, Python frames as given, entries in upper case."""
    joined = join(native, [name.isupper() for name in python], complete=complete)
    if joined is None:
        return None
    return "".join(native[frame.index] if isinstance(frame, Native) else python[frame.index] for frame in joined)


def test_a_run_of_functions_shares_one_evaluation() -> None:
    assert shown(["1", EVALUATION, "2"], "abC") == "1abC2"


def test_functions_called_from_native_code_stand_inside_of_it() -> None:
    assert shown(["1", EVALUATION, "2", EVALUATION, "3"], "AbC") == "1A2bC3"


def test_an_evaluation_without_a_function_keeps_its_place() -> None:
    """Between an entry and the clean-up of its last variable, the function is already gone."""
    assert join([EVALUATION, "2", EVALUATION], [True, False, True]) == [Python(0), Native(1), Python(1), Python(2)]


@pytest.mark.parametrize(
    ("native", "python"),
    [(["1", EVALUATION], "AB"), (["1", EVALUATION, EVALUATION], "aB"), (["1"], "A"), ([EVALUATION], "")],
)
def test_sides_that_disagree_are_not_joined(native: list[str], python: str) -> None:
    assert shown(native, python) is None


def test_a_cut_stack_is_joined_from_its_inner_end() -> None:
    assert shown(["1", EVALUATION, "2"], "aBcD", complete=False) == "1aB2cD"
    assert shown(["1", EVALUATION, "2", "3", EVALUATION], "aB", complete=False) == "1aB23" + EVALUATION


def test_no_python_at_all() -> None:
    assert shown(["1", "2"], "") == "12"


def test_parts_of_the_evaluation_function_count_once() -> None:
    """Built with tail calls, it is one instruction's function, and perhaps its own frame outside that."""
    native = ["1", "_TAIL_CALL_CALL", EVALUATION, "2", "_TAIL_CALL_CALL_KW.llvm.1", "3"]
    assert shown(native, "AB") == "1A2B3"


def test_evaluation_names() -> None:
    assert shown(["1", EVALUATION], "A") == "1A"
    assert shown(["1", f"{EVALUATION}.cold"], "A") == "1A"
    assert shown(["1", "_PyEval_Vector"], "") == "1_PyEval_Vector"


@pytest.mark.parametrize(
    ("symbol", "name"),
    [
        ("__pyx_pw_4cuda_8bindings_6driver_123cuMemAlloc", "cuda.bindings.driver.cuMemAlloc"),
        ("__pyx_f_4cuda_8bindings_8cydriver_cuMemAlloc_v2", "cuda.bindings.cydriver.cuMemAlloc_v2"),
        ("__pyx_pw_4cupy_5_core_4core_7ndarray_11__init__", "cupy._core.core.ndarray.__init__"),
        ("__pyx_pf_5solve_step", "solve.step"),
        ("__pyx_module_cleanup", "__pyx_module_cleanup"),
        ("cuMemAlloc_v2", "cuMemAlloc_v2"),
        ("", ""),
    ],
)
def test_cython_names(symbol: str, name: str) -> None:
    assert cython_name(symbol) == name
