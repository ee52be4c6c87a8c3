"""Long C++ names lose their least informative parts, and keep beginning and end."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ffm.report.names import cut_before_place, cut_behind_place, cut_middle, shorten

LONG = (
    "void cusp::system::detail::generic::multiply<thrust::device_policy<thrust::system::cuda::tag>, "
    "int>(thrust::device_execution_policy<thrust::system::cuda::tag>&, int&)"
)


def test_a_name_that_fits_stays_whole() -> None:
    assert shorten(LONG, len(LONG)) == LONG


def test_template_arguments_and_parameters_go_first() -> None:
    assert shorten(LONG, 60) == "cusp::system::detail::generic::multiply<...>"


def test_then_the_middle_goes() -> None:
    assert shorten(LONG, 29) == "cusp::system:...multiply<...>"


def test_a_cut_through_dots_leaves_one_row_of_them() -> None:
    assert cut_middle("sparse::detail::contiguous_storage<...>::~contiguous_storage", 48).count(".") == 3
    assert cut_middle("contiguous_storage<...>::deallocate", 27) == "contiguous_s...::deallocate"


@pytest.mark.parametrize(
    ("width", "short"),
    [
        (40, "core/solve.cu:12 cudaMemcpy, cudaFree"),
        (30, "core/solve.cu:12 cudaMemcpy..."),
        (20, "core/solve.cu:12"),
        (10, "cor...u:12"),
    ],
)
def test_a_line_number_stays_when_the_calls_behind_it_are_cut(width: int, short: str) -> None:
    assert cut_behind_place("core/solve.cu:12 cudaMemcpy, cudaFree", width) == short
    assert len(short) <= width


@pytest.mark.parametrize(
    ("width", "short"),
    [
        (60, "cudaDeviceSynchronize cg.cu:66 from als.cu:184"),
        (36, "cudaDevi... cg.cu:66 from als.cu:184"),
        (31, "cud... cg.cu:66 from als.cu:184"),
        (30, "cudaDeviceSynchronize cg.cu:66"),
        (15, "cud... cg.cu:66"),
        (14, "cudaD...cu:184"),
    ],
)
def test_places_stay_when_the_call_before_them_is_cut(width: int, short: str) -> None:
    assert cut_before_place("cudaDeviceSynchronize cg.cu:66 from als.cu:184", width) == short
    assert len(short) <= width
    assert cut_before_place("cudaFree cg.cu:66 from als.cu:184*", 20) == "cudaFree cg.cu:66*"


@given(st.text(alphabet=st.one_of(st.characters(), st.just("."))), st.integers(min_value=5, max_value=60))
def test_cutting_never_exceeds_the_width_and_keeps_both_ends(text: str, width: int) -> None:
    short = cut_middle(text, width)
    assert len(short) <= width
    assert text.startswith(short[: (width - 3) // 2])
    assert not text or text[-1] == short[-1]
