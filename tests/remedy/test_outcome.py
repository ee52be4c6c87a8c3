"""When a corrected program counts as behaving like the original."""

from __future__ import annotations

from ffm.instrument.session.program import Ending
from ffm.remedy.correct import ProgramRun
from ffm.remedy.layout import constant
from ffm.report.remedies.outcome import Expected, not_paying
from ffm.report.remedies.outcome_notes import measured_otherwise, notes_of_stops
from ffm.report.remedies.outputs import compare_outputs

ENDED = Ending(code=0, signal=None, timed_out=False)


def run(output: str, *, ending: Ending = ENDED, **files: str | None) -> ProgramRun:
    return ProgramRun(1.0, ending, output.encode(), files)


def test_equal_runs_have_no_differences() -> None:
    assert compare_outputs([run("a\nb\n"), run("a\nb\n")], [run("a\nb\n")]) == ([], [])


def test_the_first_different_line_is_named() -> None:
    differences, _ = compare_outputs([run("a\nb\n")], [run("a\nb\n"), run("a\nc\n")])
    assert differences == ["Line 2 of the output is 'b'; the corrected program wrote 'c'."]


def test_lines_that_always_differ_are_not_compared() -> None:
    differences, notes = compare_outputs([run("a\n1 ms\n"), run("a\n2 ms\n")], [run("a\n3 ms\n"), run("a\n4 ms\n")])
    assert differences == []
    assert notes == ["1 lines of the output differ from run to run and were not compared."]
    differences, _ = compare_outputs([run("a\n1 ms\n"), run("a\n2 ms\n")], [run("b\n3 ms\n")])
    assert len(differences) == 1


def steps(*times: float) -> str:
    return "".join(f"step {number} took {time} s\n" for number, time in enumerate(times))


def test_a_time_that_was_the_same_by_chance_is_no_difference() -> None:
    bare = [run(steps(0.3, 0.4, 0.3)), run(steps(0.3, 0.3, 0.5))]
    differences, notes = compare_outputs(bare, [run(steps(0.4, 0.4, 0.4))])
    assert differences == []
    assert notes[-1].startswith("Line 1 of the corrected output differs only in numbers that vary")
    # It never was as long as this, and the step itself never varies.
    (beyond,) = compare_outputs(bare, [run(steps(0.6, 0.4, 0.4))])[0]
    assert beyond.startswith("Line 1 of the output is 'step 0 took 0.3 s'")
    (other,) = compare_outputs(bare, [run(steps(0.3, 0.4, 0.4).replace("step 0", "step 1"))])[0]
    assert other.startswith("Line 1 ")


def test_what_differs_in_single_runs_of_two_lines_may_differ_in_others() -> None:
    many = [0.5] * 60
    bare = [run(steps(*times, *many)) for times in ((0.6, 0.5), (0.5, 0.4), (0.5, 0.5))]
    assert compare_outputs(bare, [run(steps(0.5, 0.5, *many[1:], 0.6))])[0] == []
    assert len(compare_outputs(bare, [run(steps(0.5, 0.5, *many[1:], 0.7))])[0]) == 1


def test_a_rate_that_no_time_gives_is_a_number_too() -> None:
    bare = [run("rate 1.5\nrate -nan\nrate 0.1\n"), run("rate -nan\nrate -nan\nrate inf\n")]
    assert compare_outputs(bare, [run("rate 0.2\nrate 0.7\nrate -nan\n")])[0] == []
    assert len(compare_outputs(bare, [run("rate 0.2\nrate 2.7\nrate -nan\n")])[0]) == 1


def test_one_number_that_varies_among_many_excuses_no_other() -> None:
    many = [0.5] * 20
    bare = [run(steps(0.1, *many)), run(steps(0.9, *many))]
    assert compare_outputs(bare, [run(steps(0.4, *many))])[0] == []
    assert len(compare_outputs(bare, [run(steps(0.4, *many[1:], 0.6))])[0]) == 1


def test_missing_lines_are_a_difference() -> None:
    assert compare_outputs([run("a\nb\n")], [run("a\n")])[0] == ["The program writes 2 lines; corrected, it wrote 1."]


def test_another_ending_is_a_difference() -> None:
    failed = Ending(code=None, signal="SIGSEGV", timed_out=False)
    assert compare_outputs([run("a\n")], [run("a\n", ending=failed)])[0] == [
        "The program exited with code 0; corrected, it was ended by the signal SIGSEGV."
    ]
    assert compare_outputs([run("a\n", ending=failed)], [run("a\n", ending=failed)])[0] == []


def test_files_are_compared() -> None:
    assert compare_outputs([run("", out="1")], [run("", out="1")]) == ([], [])
    assert compare_outputs([run("", out="1")], [run("", out="2")])[0] == [
        "The corrected program wrote a different out."
    ]
    assert compare_outputs([run("", out=None)], [run("", out=None)])[0] == [
        "The program does not write out, so it cannot be compared."
    ]
    assert compare_outputs([run("", out="1")], [run("", out="1"), run("", out=None)])[0] == [
        "The corrected program did not write out."
    ]
    varying = compare_outputs([run("", out="1"), run("", out="2")], [run("", out="3")])
    assert varying == ([], ["out differs from run to run: it was not compared."])


def test_corrections_that_are_expected_to_lose_time_say_why_they_were_made() -> None:
    assert not_paying(Expected(0.001, -0.01, 0.02), 0.01, 0.02) == []
    [note] = not_paying(Expected(-0.001, -0.01, 0.02), 0.005, 0.0)
    assert "at all" in note and "named" in note


def test_calls_that_took_longer_than_they_save_are_not_put_down_to_getting_into_the_program() -> None:
    """Nor were they named: all are taken that are expected to pay."""
    [note] = not_paying(Expected(-0.045, -0.16, 0.17), 0.11, 0.148)
    assert note.startswith("The corrected calls took 0.148 s, more than the 0.110 s")
    assert "named" not in note and "at all" not in note


def test_a_machine_that_has_changed_since_the_measurement_is_noted() -> None:
    assert measured_otherwise(1.0, [1.05, 0.95]) == []
    assert measured_otherwise(1.0, [1.3, 1.08]) == [], "one run was as fast"
    assert measured_otherwise(0.1, [0.08, 0.079]) == [], "getting into the program takes that long"
    [slower] = measured_otherwise(1.0, [1.3, 1.25])
    assert "took 1.250 to 1.300 s, and 1.000 s when it was measured" in slower
    [faster] = measured_otherwise(1.0, [0.7, 0.8])
    [once] = measured_otherwise(1.0, [0.7])
    assert "took 0.700 s, and" in once
    assert "took 0.700 to 0.800 s, and 1.000 s when it was measured" in faster


def test_why_corrections_stopped_is_said_once() -> None:
    stops = [constant("FFM_STOP_NONE"), constant("FFM_STOP_SHARED"), constant("FFM_STOP_SHARED")]
    [note] = notes_of_stops(stops)
    assert note.startswith("Corrections stopped: the program detached from a context that it had attached to more than")
