"""Verdicts on random programs are sound, and as complete as the definitions demand; compared with a slow reference."""

from __future__ import annotations

import itertools
from collections.abc import Collection
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from hypothesis import HealthCheck, Phase, example, given, note, settings
from hypothesis import strategies as st

from ffm.model.necessity.reasons import REQUIRED, Reason
from ffm.model.necessity.rules import Necessity, needed_synchronizations
from ffm.results.columnar.tables import read_table
from ffm.results.folder.paths import ResultsFolder
from ffm.stages.measure import Request
from ffm.stages.memory import run_memory
from ffm.stages.registry import MEASURING_STAGES
from tests.examples import examples
from tests.planted.building import KEPT, SECONDS, Programs
from tests.planted.reference import broken, last_covers, protecting, sound_script
from tests.planted.script_tables import handovers_of_script, operations_of_script, uses_of_script
from tests.planted.scripts import WAITS, Script, Step, steps, text_of

INTERPRETER = Path(__file__).parent / "interpreter" / "interpreter.cu"

scripts = st.lists(steps(), min_size=4, max_size=24).map(sound_script)
of_one_thread = scripts.map(lambda script: [replace(step, thread=0) for step in script])


def waits_of(script: Script) -> list[int]:
    return [row for row, step in enumerate(script) if step.operation in WAITS]


def check_verdicts(
    script: Script, needed: Collection[int], *, by_memory: bool = False, unordered: Collection[int] = ()
) -> None:
    """What is reported as needed must be sufficient, and nothing may be reported as needed without a cause.

    The waits in `unordered` may be needed, too, where nobody knows which thread hands over to which.
    """
    note(text_of(script))
    note(f"said to be needed: {sorted(needed)}")
    assert broken(script, needed, by_memory=by_memory) == [], (
        "without the waits that are said to be spare the program is wrong"
    )
    assert set(needed) <= last_covers(script) | set(unordered), (
        "a wait is said to be needed though nothing relies on it last"
    )


def on_tables(script: Script) -> Necessity:
    return needed_synchronizations(
        operations_of_script(script), uses_of_script(script), handovers=handovers_of_script(script)
    )


def needed_rows(verdicts: Necessity) -> list[int]:
    return np.flatnonzero(np.isin(verdicts.reason, list(REQUIRED))).tolist()


SHARED_STREAM = [
    Step("download", thread=0, stream=2),
    Step("wait_device", thread=1),
    Step("launch", thread=0, stream=0),
    Step("wait_device", thread=0),
    Step("launch", thread=1, stream=0),  # comes after the download because the launch before it does
]
JOINED_SHARED_STREAM = [
    Step("launch", thread=0, stream=1),
    Step("launch", thread=0, stream=2),
    Step("wait_stream", thread=0, stream=2),
    Step("launch", thread=1, stream=1),
    Step("wait_device", thread=1),
    Step("launch", thread=1, stream=0),  # comes after the stream 1, whose last work comes after the stream 2
]


@settings(
    max_examples=examples(300), deadline=None, suppress_health_check=[HealthCheck.filter_too_much, HealthCheck.too_slow]
)
@given(scripts | of_one_thread)
@example(SHARED_STREAM)
@example(JOINED_SHARED_STREAM)
def test_verdicts_on_tables(script: Script) -> None:
    verdicts = on_tables(script)
    check_verdicts(script, needed_rows(verdicts))


@settings(max_examples=examples(200), deadline=None)
@given(scripts)
def test_every_wait_and_nothing_else_gets_a_verdict(script: Script) -> None:
    verdicts = on_tables(script)
    assert np.flatnonzero(verdicts.reason != Reason.NOT_A_SYNCHRONIZATION).tolist() == waits_of(script)


ORDERED_BY_ANOTHER_WAIT = [
    Step("download", thread=0, stream=2, buffer=1),
    Step("wait_device", thread=1),
    Step("launch", thread=0, stream=0),  # comes after the download only because the wait stays
    Step("wait_stream", thread=1, stream=0),
    Step("read", thread=0, buffer=1),
]


@settings(max_examples=examples(200), deadline=None)
@given(scripts)
@example(ORDERED_BY_ANOTHER_WAIT)
def test_the_wait_that_must_stay_is_needed_and_covers_the_same(script: Script) -> None:
    verdicts = on_tables(script)
    note(text_of(script))
    for row in np.flatnonzero(verdicts.reason == Reason.LATER_COVERS).tolist():
        keep = int(verdicts.keep[row])
        assert verdicts.reason[keep] in REQUIRED
        assert keep in protecting(script, row)
        assert keep > row


@settings(max_examples=examples(200), deadline=None)
@given(scripts)
def test_the_reference_agrees_with_itself(script: Script) -> None:
    note(text_of(script))
    assert broken(script, waits_of(script)) == []
    assert broken(script, last_covers(script)) == []


def test_the_reference_knows_a_plain_wait() -> None:
    script = [
        Step("download", stream=2, buffer=0),
        Step("wait_stream", stream=2),
        Step("read", buffer=0),
        Step("wait_device"),
    ]
    assert last_covers(script) == {1}
    assert broken(script, {1}) == []
    assert broken(script, {3}) != []


def test_the_reference_knows_the_order_of_streams() -> None:
    script = [Step("launch", stream=2), Step("wait_stream", stream=2), Step("launch", stream=3)]
    assert last_covers(script) == {1}
    by_event = [Step("launch", stream=2), Step("record", event=0, stream=2), Step("wait_device")]
    by_event += [Step("order", stream=3, event=0), Step("launch", stream=3)]
    assert last_covers(by_event) == frozenset()
    assert broken(by_event, set()) == []


@pytest.fixture(scope="module")
def interpreter(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return Programs(tmp_path_factory.mktemp("interpreter"), kept=KEPT).executable(INTERPRETER)


numbers = itertools.count()


@settings(
    max_examples=examples(24),
    deadline=None,
    derandomize=True,
    phases=[Phase.explicit, Phase.generate],
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)
@given(script=scripts)
def test_verdicts_end_to_end(interpreter: Path, tmp_path: Path, script: Script) -> None:
    folder = ResultsFolder(tmp_path / str(next(numbers)))
    folder.root.mkdir()
    (folder.root / "script").write_text(text_of(script))
    request = Request([str(interpreter), str(folder.root / "script")], folder, SECONDS)
    MEASURING_STAGES["baseline"](request)
    table = read_table(folder.root / run_memory(request).synchronizations)
    waits = waits_of(script)
    note(text_of(script))
    note(f"reasons: {[Reason(reason).name for reason in table['reason'].tolist()]}")
    assert len(table["reason"]) == len(waits), "each wait of the script is one synchronization, in its order"
    needed = [row for row, reason in zip(waits, table["reason"], strict=True) if reason in REQUIRED]
    # The interpreter's threads hand over by an atomic variable, which nothing records.
    unordered = needed_rows(needed_synchronizations(operations_of_script(script), uses_of_script(script)))
    check_verdicts(script, needed, by_memory=True, unordered=unordered)
