"""What `make test` leaves out of a test with variants."""

from __future__ import annotations

from tests.conftest import ROOT
from tests.thinning import THINNED


def test_the_tests_that_are_thinned_exist_and_have_variants() -> None:
    for name in THINNED:
        file, _, function = name.partition("::")
        before, defined, _ = (ROOT / "tests" / file).read_text(encoding="utf-8").partition(f"\ndef {function}(")
        assert defined, name
        assert "parametrize" in before.rsplit("\ndef ", 1)[-1] or "of_each_case" in before, name
