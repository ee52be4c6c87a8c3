"""The versions of the driver functions' forms are those of CUDA's own header, and name the intended form."""

from __future__ import annotations

import re
from collections import defaultdict

import pytest

from ffm.driver.catalogue import load_catalogue
from ffm.driver.versions import form_of, newest
from ffm.driver.vocabulary import DefaultStream
from tests.driver.cuda_header import header_path

CATALOGUE = load_catalogue()


def versions_in_header() -> dict[tuple[str, bool], set[int]]:
    """Return the versions of each function's types, by name and whether the default stream is the thread's own."""
    path = header_path().with_name("cudaTypedefs.h")
    if not path.exists():
        pytest.skip("cudaTypedefs.h is not installed")
    found: dict[tuple[str, bool], set[int]] = defaultdict(set)
    for base, version, flavour in re.findall(r"\*PFN_(cu\w+?)_v(\d+)(_ptsz|_ptds)?\)", path.read_text()):
        found[base, bool(flavour)].add(int(version))
    return found


def test_every_version_of_the_header_is_that_of_a_form() -> None:
    header = versions_in_header()
    table: dict[tuple[str, bool], set[int]] = defaultdict(set)
    for function in CATALOGUE.functions:
        table[function.base, function.default_stream is DefaultStream.PER_THREAD].add(function.since)
    bases = {function.base for function in CATALOGUE.functions}
    # The installed header may be of another release of CUDA 13 than the table.
    latest = min(newest(), max(version for versions in header.values() for version in versions))
    assert latest >= 13000
    for key in table.keys() | {key for key in header if key[0] in bases}:
        known, told = ({version for version in source[key] if version <= latest} for source in (table, header))
        assert known == told, key


def test_later_forms_have_later_versions() -> None:
    forms = defaultdict(list)
    for function in CATALOGUE.functions:
        number = re.search(r"_v(\d)", function.name)
        forms[function.base, function.default_stream].append((int(number[1]) if number else 1, function.since))
    for versions in forms.values():
        assert [version for _, version in sorted(versions)] == sorted(version for _, version in versions)


@pytest.mark.parametrize(
    ("base", "version", "per_thread", "form"),
    [
        ("cuMemAlloc", 2000, False, "cuMemAlloc"),
        ("cuMemAlloc", 13000, False, "cuMemAlloc_v2"),
        ("cuMemAlloc", 13000, True, "cuMemAlloc_v2"),
        ("cuMemcpyHtoDAsync", 6000, True, "cuMemcpyHtoDAsync_v2"),
        ("cuMemcpyHtoDAsync", 12000, True, "cuMemcpyHtoDAsync_v2_ptsz"),
        ("cuMemcpyBatchAsync", 12080, False, "cuMemcpyBatchAsync"),
        ("cuMemcpyBatchAsync", 13000, True, "cuMemcpyBatchAsync_v2_ptsz"),
    ],
)
def test_name_version_and_flavour_name_a_form(base: str, version: int, per_thread: bool, form: str) -> None:
    function = form_of(base, version, per_thread=per_thread)
    assert function is not None
    assert function.name == form


def test_what_a_version_does_not_have_is_no_form() -> None:
    assert form_of("cuMemAllocAsync", 11000, per_thread=False) is None
    assert form_of("cuWarpTime", 13000, per_thread=False) is None
