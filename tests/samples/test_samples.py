"""Each sample and its twins produce a correct result, and compute the same."""

from __future__ import annotations

import os
import re
import subprocess
from pathlib import Path

import pytest

from ffm.vgpu.paths import sample
from ffm.vgpu.samples.truth import UnreadableMarksError, as_toml, call_sites, sample_folders

FEW = {"als": "3", "amg": "2", "gaussian": "20", "fft": "2", "flag": "5", "ibm": "1", "overlap": "8", "train": "8"}
FOLDERS = sample_folders()


def twins_of(folder: Path) -> list[str]:
    return sorted({site.twin for site in call_sites(folder) if site.twin is not None})


def run(program: str, *arguments: str, **environment: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sample(program), *arguments],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
        env={**os.environ, **environment},
    )


@pytest.fixture(scope="module", params=[folder.name for folder in FOLDERS])
def original(request: pytest.FixtureRequest) -> tuple[str, subprocess.CompletedProcess[str]]:
    return request.param, run(request.param, FEW[request.param])


def test_result_is_right(original: tuple[str, subprocess.CompletedProcess[str]]) -> None:
    name, done = original
    assert (done.returncode, done.stderr) == (0, ""), name
    assert re.search("checksum [0-9a-f]{8}", done.stdout), name


def test_every_twin_gives_the_same_output(original: tuple[str, subprocess.CompletedProcess[str]]) -> None:
    name, done = original
    twins = twins_of(FOLDERS[[folder.name for folder in FOLDERS].index(name)])
    assert twins
    for twin in twins:
        corrected = run(twin, FEW[name])
        assert (corrected.returncode, corrected.stderr) == (0, ""), twin
        assert corrected.stdout == done.stdout, twin


def test_ranks_of_amg_work_on_squares_of_their_own() -> None:
    ranks = [run("amg", "1", PMI_RANK=str(rank)) for rank in range(2)]
    assert [done.returncode for done in ranks] == [0, 0]
    assert [done.stdout.partition(",")[0] for done in ranks] == ["rank 0", "rank 1"]
    assert len({done.stdout.split()[-1] for done in ranks}) == 2


@pytest.mark.parametrize("folder", FOLDERS, ids=lambda folder: folder.name)
def test_truth_is_what_the_marks_say(folder: Path) -> None:
    written = folder.with_name(f"{folder.name}.truth.toml").read_text()
    assert written == as_toml(call_sites(folder)), "stale: run `python -m ffm.vgpu.samples.truth`"


@pytest.mark.parametrize("name", [folder.name for folder in FOLDERS])
@pytest.mark.parametrize("argument", ["0", "many", "", "99999999999"])
def test_wrong_arguments_are_named(name: str, argument: str) -> None:
    done = run(name, argument)
    assert done.returncode == 2
    assert f"{name}: '{argument}' is no whole number" in done.stderr
    assert f"usage: {name} [" in done.stderr


def test_a_problem_names_its_twin(tmp_path: Path) -> None:
    folder = tmp_path / "pair"
    folder.mkdir()
    (folder / "a.cu").write_text(
        "void f()\n{\n"
        "    // problem: needless synchronization\n    check(cudaDeviceSynchronize());\n"
        "    // problem: needless synchronization [pair_fixed_late]\n    check(cudaDeviceSynchronize());\n"
        "    // once: teardown\n    check(cudaDeviceReset());\n}\n"
    )
    assert [site.twin for site in call_sites(folder)] == ["pair_fixed", "pair_fixed_late", None]


def test_python_sources_are_read(tmp_path: Path) -> None:
    (tmp_path / "a.py").write_text(
        "class A:\n    def step(self):\n        # needed: result used at once\n        driver.cuCtxSynchronize()\n"
    )
    (site,) = call_sites(tmp_path)
    assert (site.file, site.line, site.call, site.function) == ("a.py", 4, "cuCtxSynchronize", "step")


def test_a_mark_of_an_unknown_library_is_refused(tmp_path: Path) -> None:
    (tmp_path / "a.h").write_text("void f()\n{\n    // once: teardown\n    release(x);\n}\n")
    with pytest.raises(UnreadableMarksError, match=r"a\.h:3"):
        call_sites(tmp_path)
