"""Whole drivers whose wait functions have many shapes: each is found, or the tool says so and times public calls."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable
from pathlib import Path

import platformdirs
import pytest

from ffm.driver.analysis import WAITING_CALLS, analyse
from ffm.driver.library import read_library
from ffm.evidence.operations import function_name
from ffm.instrument.probing.wait_function import WaitFunction
from ffm.instrument.probing.wait_search import find_wait_function
from ffm.results.columnar.tables import read_table
from ffm.results.documents.measured import Baseline, Tracing
from ffm.results.folder.paths import ResultsFolder
from ffm.results.vocabulary import PRIVATE
from ffm.stages.baseline import run_baseline
from ffm.stages.measure import Request
from ffm.stages.tracing import run_tracing
from tests.driver.driver_shapes import shape, symbol_at

PROGRAM = Path(__file__).with_name("waiting.cu")
ROUNDS = 5

FOUND = {
    "plain": {"wait_for_gpu"},
    "without_unwind_tables": {"wait_for_gpu"},
    "inlined": {"wait_for_gpu", "wait_for_context", "wait_for_stream"},
    "split": {"wait_for_gpu"},
    "tail_called": {"wait_inside"},
    "two": {"wait_for_gpu", "wait_for_gpu_too"},
    "spinning_and_blocking": {"wait_for_gpu", "spin_for_gpu"},
    "by_scheduling": {"wait_for_gpu"},
    "short_entries": {"wait_for_gpu"},
    "own_threads": {"wait_for_gpu"},
}
"""Functions to be found in each shape."""


def of(shapes: Iterable[str], chosen: set[str]) -> list[object]:
    """One variant for each shape, of which only the chosen ones are built for `make test`."""
    return [pytest.param(name, marks=[] if name in chosen else pytest.mark.thorough) for name in shapes]


@pytest.fixture(autouse=True)
def _own_cache(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(platformdirs, "user_cache_dir", lambda name: str(tmp_path / "cache" / name))


@pytest.mark.parametrize("name", of(FOUND, {"plain", "own_threads"}))
def test_found_in_the_shape(name: str) -> None:
    library = shape(name)
    found: WaitFunction = find_wait_function(library)
    assert found.reason == ""
    assert {symbol_at(library, offset).split(" ")[0] for offset in found.offsets} == FOUND[name]
    assert set(WAITING_CALLS) < set(found.waiting_calls)
    # Contexts that wait in other ways were probed as well.
    assert {f"cuEventSynchronize ({kind})" for kind in ("spinning", "yielding", "blocking")} < set(found.waiting_calls)
    assert found.uncovered_calls == ()
    assert found.own_code == ()


@pytest.mark.thorough
def test_shapes_are_what_their_names_say() -> None:
    assert analyse(read_library(shape("plain"))).from_unwind_tables
    assert not analyse(read_library(shape("without_unwind_tables"))).from_unwind_tables
    symbols = shape("split").with_name("libcuda.so.1.symbols").read_text().splitlines()
    assert any("wait_for_gpu" in symbol and "cold" in symbol for symbol in symbols)


def test_an_entry_that_jumps_through_a_slot_leads_to_the_implementation() -> None:
    library = read_library(shape("short_entries"))
    led = library.behind_slots()
    assert led.keys() == library.exports.keys()
    assert symbol_at(library.path, led["cuCtxSynchronize"]) == "implementation_cuCtxSynchronize"
    # An ordinary stub tests a flag first, and can be patched.
    assert read_library(shape("plain")).behind_slots() == {}


@pytest.mark.thorough
def test_calls_that_poll_in_their_own_code_are_named() -> None:
    library = shape("sliced")
    found = find_wait_function(library)
    names = {symbol_at(library, offset) for offset in found.offsets}
    assert {"wait_for_context", "wait_for_stream"} < names
    assert found.own_code == ("cuEventSynchronize",)
    assert "wait_for_a_moment" not in names


def test_where_the_gpu_cannot_be_kept_busy_there_is_no_answer() -> None:
    found = find_wait_function(shape("never_busy"))
    assert found.offsets == ()
    assert "the GPU cannot be kept busy" in found.reason


@pytest.fixture
def measured(
    build_program: Callable[[Path], Path], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> Callable[[str], tuple[Baseline, Tracing, Counter[str]]]:
    """Run stages 1 and 2 with a shape of the driver; return both documents, and the waits of each function."""
    program = build_program(PROGRAM)

    def measure(name: str) -> tuple[Baseline, Tracing, Counter[str]]:
        monkeypatch.setenv("LD_LIBRARY_PATH", str(shape(name).parent))
        folder = ResultsFolder(tmp_path / name)
        folder.root.mkdir()
        request = Request([str(program), str(ROUNDS)], folder, 60.0)
        baseline, tracing = run_baseline(request), run_tracing(request)
        assert baseline.run is not None and baseline.run.driver is not None
        assert Path(baseline.run.driver.path).samefile(shape(name))
        columns = read_table(folder.root / tracing.events)
        waited = columns["waits"] > 0
        return baseline, tracing, Counter(function_name(number) for number in columns["function"][waited].tolist())

    return measure


WAITS = Counter(
    {
        "cuCtxSynchronize": ROUNDS,
        "cuStreamSynchronize": ROUNDS,
        "cuEventSynchronize": ROUNDS,
        "cuMemcpyDtoH_v2": ROUNDS,
        "cuMemFree_v2": ROUNDS,
    }
)
"""The functions in which `waiting.cu` waits."""


@pytest.mark.parametrize(
    "name", of(("two", "spinning_and_blocking", "inlined", "sliced", "short_entries", "own_threads"), {"own_threads"})
)
def test_every_wait_is_seen_and_named(
    name: str, measured: Callable[[str], tuple[Baseline, Tracing, Counter[str]]]
) -> None:
    baseline, tracing, waits = measured(name)
    assert {function: waits[function] for function in WAITS} == WAITS
    assert waits[PRIVATE] == 0  # the driver's own threads are not part of the program
    assert set(WAITS) <= set(baseline.functions)
    assert baseline.run is not None and tracing.run is not None
    assert all(hook.how != "failed" for hook in tracing.run.hooks)


def test_without_a_wait_function_public_calls_are_timed_and_the_results_say_so(
    measured: Callable[[str], tuple[Baseline, Tracing, Counter[str]]],
) -> None:
    baseline, _, _ = measured("never_busy")
    assert baseline.run is not None and baseline.run.driver is not None
    assert baseline.run.driver.wait_function is None
    assert "cannot be kept busy" in baseline.run.driver.wait_function_found
    public = {"cuCtxSynchronize", "cuStreamSynchronize", "cuEventSynchronize"}
    assert {call.function: call.count for call in baseline.waits} == dict.fromkeys(public, ROUNDS)
    assert all(call.wait_s > 0 for call in baseline.waits)


HIDDEN = "cuMemcpyHtoDAsync_v2"
"""What `waiting.cu` calls, and the shape `unexported` does not export."""


def test_calls_through_pointers_that_nothing_exports_are_recorded(
    measured: Callable[[str], tuple[Baseline, Tracing, Counter[str]]], tmp_path: Path
) -> None:
    _, tracing, _ = measured("unexported")
    assert tracing.run is not None
    assert {hook.function: hook.how for hook in tracing.run.hooks}.get(HIDDEN) == "replace-fast"
    columns = read_table(tmp_path / "unexported" / tracing.events)
    called = [function_name(number) for number in columns["function"].tolist()]
    assert called.count(HIDDEN) == 5 * ROUNDS
