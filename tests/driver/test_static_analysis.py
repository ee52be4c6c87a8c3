"""Functions, calls and implementations that are read from a library's file alone."""

from __future__ import annotations

import subprocess
from pathlib import Path

import msgspec
import platformdirs
import pytest

from ffm.driver.analysis import DriverAnalysis, analyse, analyse_driver
from ffm.driver.library import DriverFileError, read_library
from tests.driver.stub_library import WITHOUT_UNWIND_TABLES, Built, build

BUILDS: dict[str, tuple[str, ...]] = {
    "plain": (),
    "O1": ("-O1",),
    "O3": ("-O3",),
    "branch protection": ("-fcf-protection=full",),
    "position of slots packed": ("-Wl,-z,pack-relative-relocs",),
    "no unwind tables": WITHOUT_UNWIND_TABLES,
    "no build-id": ("-Wl,--build-id=none",),
    "one segment": ("-Wl,-z,noseparate-code",),
    "sections far apart": ("-Wl,-z,max-page-size=0x200000",),
}


@pytest.fixture(scope="module", params=BUILDS.values(), ids=BUILDS.keys())
def library(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Built:
    """One build for all tests; none of them changes it."""
    options: tuple[str, ...] = request.param
    return build(tmp_path_factory.mktemp("stub"), *options)


@pytest.fixture(autouse=True)
def cache(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    monkeypatch.setattr(platformdirs, "user_cache_dir", lambda name: str(tmp_path / "cache" / name))
    return tmp_path / "cache" / "ffm" / "drivers"


def analysed(library: Built) -> DriverAnalysis:
    return analyse(read_library(library.path))


def internal(library: Built) -> dict[str, tuple[int, int]]:
    """Return the functions named in the source, without those of the compiler's start files."""
    names = ("deep_wait", "shared_helper", "body_of_synchronize", "free_memory", "copy", "launch")
    return {name: library.functions[name] for name in names}


def test_every_function_start_is_known(library: Built) -> None:
    analysis = analysed(library)
    for name, (start, size) in internal(library).items():
        assert start in analysis.starts, name
        assert analysis.function_start(start + size - 1) == start, name


def test_sizes_come_from_unwind_tables(tmp_path: Path) -> None:
    library = build(tmp_path)
    analysis = analysed(library)
    assert analysis.from_unwind_tables
    for name, (start, size) in internal(library).items():
        assert analysis.ends[analysis.starts.index(start)] == start + size, name
    assert analysis.function_start(0) is None


def test_without_unwind_tables_it_says_so(tmp_path: Path) -> None:
    assert not analysed(build(tmp_path, *WITHOUT_UNWIND_TABLES)).from_unwind_tables


def test_exports_are_the_dynamic_functions(library: Built) -> None:
    exports = analysed(library).exports
    for name in ("cuCtxSynchronize", "cuMemFree_v2", "cuLaunchKernel", "stub_table"):
        assert exports[name] == library.functions[name][0]
    assert "deep_wait" not in exports


def test_candidates_are_what_all_waiting_calls_reach(library: Built) -> None:
    candidates = analysed(library).candidates
    assert library.functions["deep_wait"][0] in candidates
    assert library.functions["shared_helper"][0] in candidates
    for name in ("launch", "copy", "free_memory", "body_of_synchronize", "cuCtxSynchronize"):
        assert library.functions[name][0] not in candidates, name


def test_implementations_carry_the_names_of_their_exports(library: Built) -> None:
    analysis = analysed(library)

    def names(function: str) -> set[str]:
        start, size = library.functions[function]
        return set(analysis.names_at(start)) & set(analysis.names_at(start + size - 1))

    assert names("launch") == {"cuLaunchKernel"}
    assert names("copy") == {"cuMemcpyDtoH_v2"}
    assert names("free_memory") == {"cuMemFree_v2"}
    assert names("body_of_synchronize") == {"cuCtxSynchronize", "cuStreamSynchronize", "cuEventSynchronize"}
    assert names("cuMemFree_v2") == {"cuMemFree_v2"}
    assert names("shared_helper") == set()
    assert names("deep_wait") == set()


def test_a_tail_called_body_belongs_to_its_export(tmp_path: Path) -> None:
    library = build(tmp_path, "-O2")
    start, _ = library.functions["body_of_free"]
    assert analysed(library).names_at(start) == ("cuMemFree_v2",)


def test_a_split_off_cold_part_belongs_to_its_export(tmp_path: Path) -> None:
    library = build(tmp_path, "-O2")
    start, _ = library.functions["copy.cold"]
    analysis = analysed(library)
    assert analysis.names_at(start) == ("cuMemcpyDtoH_v2",)
    assert analysis.function_start(start) == library.functions["copy"][0]


def test_analysis_is_cached_by_build(tmp_path: Path, cache: Path) -> None:
    library = build(tmp_path)
    first = analyse_driver(library.path)
    (stored,) = cache.iterdir()
    assert stored.name == f"{first.identity}.json"
    # Same build elsewhere: the answer comes from the cache.
    marked = msgspec.structs.replace(first, candidates=[1, 2, 3])
    stored.write_bytes(msgspec.json.encode(marked))
    copy = tmp_path / "copy.so"
    copy.write_bytes(library.path.read_bytes())
    assert analyse_driver(copy).candidates == [1, 2, 3]
    assert analyse_driver(copy).implementations == first.implementations


@pytest.mark.parametrize(
    "damage",
    [
        lambda content: content[: len(content) // 2],
        lambda content: content.replace(b'"version":1', b'"version":99'),
        lambda content: content.replace(b'"identity":"', b'"identity":"other'),
    ],
    ids=["truncated", "another version", "another build"],
)
def test_an_unusable_cache_is_made_again(tmp_path: Path, cache: Path, damage) -> None:  # type: ignore[no-untyped-def]
    library = build(tmp_path)
    first = analyse_driver(library.path)
    (stored,) = cache.iterdir()
    stored.write_bytes(damage(stored.read_bytes()))
    assert analyse_driver(library.path) == first
    assert msgspec.json.decode(stored.read_bytes(), type=DriverAnalysis) == first


def test_a_library_without_build_id_is_known_by_its_content(tmp_path: Path) -> None:
    one = build(tmp_path, "-Wl,--build-id=none")
    identity = analyse_driver(one.path).identity
    assert identity.startswith("sha256-")
    one.path.write_bytes(one.path.read_bytes() + b"more")
    assert analyse_driver(one.path).identity != identity


def test_files_that_are_no_drivers_are_refused(tmp_path: Path) -> None:
    text = tmp_path / "text"
    text.write_text("hello")
    empty = tmp_path / "empty"
    empty.touch()
    truncated = tmp_path / "truncated"
    truncated.write_bytes(build(tmp_path).path.read_bytes()[:3000])
    for path in (text, empty, truncated, tmp_path / "missing", tmp_path):
        with pytest.raises(DriverFileError, match=str(path)):
            analyse_driver(path)
    with pytest.raises(DriverFileError, match="not an x86-64 shared library"):
        analyse_driver(_object_file(tmp_path))


def test_another_library_is_not_a_driver(tmp_path: Path) -> None:
    with pytest.raises(DriverFileError, match="does not export cuCtxSynchronize"):
        analyse_driver(build(tmp_path, "-DcuCtxSynchronize=something_else").path)


def _object_file(folder: Path) -> Path:
    source = folder / "nothing.c"
    source.write_text("int nothing;\n")
    subprocess.run(["gcc", "-c", "-o", str(folder / "nothing.o"), str(source)], check=True)
    return folder / "nothing.o"
