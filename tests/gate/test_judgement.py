"""What passes the gate."""

from __future__ import annotations

import pytest

from ffm.gate.baseline import known_sites
from ffm.gate.judgement import Judgement, judge
from ffm.gate.problems import ProblemCalls
from ffm.gate.rules import Allowed, Limits, Rules
from tests.gate.gate_calls import a_site, calls_of

NO_LIMITS = Limits()
FREE, COPY = calls_of(a_site(0)), calls_of(a_site(1, "cudaMemcpy", "load", 20, "transfer"))


def judged(calls: list[ProblemCalls], *allow: Allowed, limits: Limits = NO_LIMITS, known: object = None) -> Judgement:
    rules = Rules(allow=list(allow), limits=limits)
    return judge(calls, rules, known, lambda sites: 0.75 * len(sites), 10.0)  # type: ignore[arg-type]


def test_without_rules_every_problem_fails() -> None:
    assert judged([]).passed
    found = judged([FREE, COPY])
    assert (found.passed, found.new) == (False, [FREE, COPY])


@pytest.mark.parametrize(
    "keys",
    [
        {"call": "cudaFree"},
        {"call": "cuMemFree*"},
        {"function": "solve"},
        {"function": "void solve<*"},
        {"file": "solve.cu"},
        {"file": "src/*.cu", "line": 10},
        {"stack": ["cudaFree", "main"]},
        {"stack": ["libcudart*", "solve.cu"]},
        {"call": "cudaFree", "file": "solve.cu", "stack": ["solve"]},
    ],
)
def test_an_entry_allows_what_all_of_its_keys_match(keys: dict[str, object]) -> None:
    assert Allowed(reason="needed", **keys).matches(FREE.site)  # type: ignore[arg-type]
    assert judged([FREE], Allowed(reason="needed", **keys)).passed  # type: ignore[arg-type]


@pytest.mark.parametrize(
    "keys",
    [
        {"call": "cudaFre"},
        {"function": "main"},
        {"file": "olve.cu"},
        {"file": "solve.cu", "line": 11},
        {"file": "other/solve.cu"},
        {"stack": ["main", "solve"]},
        {"stack": ["solve", "solve"]},
        {"call": "cudaFree", "file": "load.cu"},
    ],
)
def test_an_entry_does_not_allow_what_one_of_its_keys_does_not_match(keys: dict[str, object]) -> None:
    entry = Allowed(reason="needed", **keys)  # type: ignore[arg-type]
    found = judged([FREE], entry)
    assert (found.passed, found.unused, found.new) == (False, [entry], [FREE])


def test_an_entry_with_a_count_allows_that_many_calls_on_each_thread() -> None:
    site = a_site()
    first, second = calls_of(site, 3), calls_of(site, 5, thread=1)
    assert judged([first, second], Allowed(reason="a", call="cudaFree", count=5)).passed
    found = judged([first, second], Allowed(reason="a", call="cudaFree", count=4))
    assert not found.passed
    assert [(many.calls, many.count) for many in found.too_many] == [([second], 5)]
    assert [one for one, _ in found.allowed] == [first]


def test_a_count_is_for_all_sites_that_an_entry_matches() -> None:
    calls = [calls_of(a_site(0), 3), calls_of(a_site(1, line=11), 3)]
    found = judged(calls, Allowed(reason="a", call="cudaFree", count=5))
    assert [(many.calls, many.count) for many in found.too_many] == [(calls, 6)]


def test_limits_tolerate_what_is_new() -> None:
    assert judged([FREE, COPY], limits=Limits(new_sites=2)).passed
    assert judged([FREE, COPY], limits=Limits(unnecessary_seconds=1.5, unnecessary_percent=15)).passed
    found = judged([FREE, COPY], limits=Limits(new_sites=1, unnecessary_seconds=1.4, unnecessary_percent=14))
    assert [(one.limit, one.allowed, one.found) for one in found.exceeded] == [
        ("new_sites", 1, 2),
        ("unnecessary_seconds", 1.4, 1.5),
        ("unnecessary_percent", 14, 15),
    ]
    assert not found.passed


def test_limits_do_not_tolerate_more_calls_than_an_entry_allows() -> None:
    assert not judged([FREE], Allowed(reason="a", call="cudaFree", count=1), limits=Limits(new_sites=9)).passed


def test_what_is_in_the_baseline_passes() -> None:
    known = known_sites([FREE.site])
    assert judged([FREE], known=known).passed
    found = judged([FREE, COPY], known=known)
    assert (found.new, found.known, found.gone) == ([COPY], [FREE], 0)
    assert judged([COPY], known=known).gone == 1


def test_limits_count_only_what_is_not_in_the_baseline() -> None:
    found = judged([FREE, COPY], known=known_sites([FREE.site]), limits=Limits(unnecessary_seconds=0.75))
    assert found.passed
