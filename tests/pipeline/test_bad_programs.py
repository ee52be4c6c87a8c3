"""Programs that cannot be measured, or that fail: one clear sentence, a non-zero exit status, and nothing is lost."""

from __future__ import annotations

import os
import stat
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from ffm.driver.search import find_driver
from ffm.instrument.recording.reader import read_recordings
from tests.conftest import Ffm, Finished

PROGRAMS = Path(__file__).parent / "programs"


@pytest.fixture(scope="module")
def ending(build_program: Callable[[Path], Path]) -> Path:
    return build_program(PROGRAMS / "ending.cu")


def refused(finished: Finished) -> str:
    """Return the one sentence of a command that refused."""
    assert finished.code == 1, finished.err
    lines = [line for line in finished.err.splitlines() if line.startswith("ffm: ")]
    assert len(lines) == 1, finished.err
    assert "Traceback" not in finished.err
    return lines[0]


def baseline(ffm: Ffm, folder: Path, *command: str | Path, limit: float | None = None) -> Finished:
    timeout = () if limit is None else ("--timeout", str(limit))
    return ffm("stage", "baseline", "--results", folder / "results", *timeout, "--", *command, folder=folder)


def test_a_program_that_does_not_exist(ffm: Ffm, tmp_path: Path) -> None:
    assert "./nowhere does not exist" in refused(baseline(ffm, tmp_path, "./nowhere"))


def test_an_argument_that_results_cannot_hold(ffm: Ffm, tmp_path: Path) -> None:
    done = ffm("stage", "baseline", "--results", tmp_path / "r", "--", "/bin/true", "\udcff")
    assert done.code == 1 and len(done.err.splitlines()) == 1 and "it is not UTF-8" in done.err


def test_a_program_that_does_not_exist_leaves_nothing(ffm: Ffm, tmp_path: Path) -> None:
    assert "does not exist" in refused(ffm("stage", "baseline", "--results", tmp_path / "results", "--", "./nosuch"))
    assert not (tmp_path / "results").exists()


def test_a_name_that_is_not_on_the_path_but_in_the_folder(ffm: Ffm, tmp_path: Path) -> None:
    (tmp_path / "mine").touch()
    assert "Did you mean ./mine?" in refused(baseline(ffm, tmp_path, "mine"))


def test_a_file_that_is_not_executable(ffm: Ffm, tmp_path: Path) -> None:
    (tmp_path / "data").write_text("no program")
    assert "chmod +x ./data" in refused(baseline(ffm, tmp_path, "./data"))


def test_a_folder(ffm: Ffm, tmp_path: Path) -> None:
    (tmp_path / "folder").mkdir()
    assert "is a folder" in refused(baseline(ffm, tmp_path, "./folder"))


def test_a_file_in_no_known_format(ffm: Ffm, tmp_path: Path) -> None:
    broken = tmp_path / "broken"
    broken.write_bytes(b"\x00\x01\x02")
    broken.chmod(broken.stat().st_mode | stat.S_IXUSR)
    assert "cannot be started" in refused(baseline(ffm, tmp_path, "./broken"))


@pytest.mark.parametrize(("place", "byte"), [(4, 1), (18, 0xB7)], ids=["32 bits", "ARM"])
def test_a_program_for_another_machine(ffm: Ffm, tmp_path: Path, place: int, byte: int) -> None:
    elf = bytearray(Path("/bin/true").read_bytes())
    elf[place] = byte
    (tmp_path / "other").write_bytes(elf)
    (tmp_path / "other").chmod(0o755)
    assert "./other is not built for 64-bit x86" in refused(baseline(ffm, tmp_path, "./other"))


def test_a_program_that_never_loads_a_driver(ffm: Ffm, tmp_path: Path) -> None:
    assert "without loading a CUDA driver" in refused(baseline(ffm, tmp_path, "/bin/true"))


def test_a_machine_without_a_driver_is_named_as_the_reason(
    ffm: Ffm, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("LD_LIBRARY_PATH", raising=False)
    if find_driver() is not None:
        pytest.skip("this machine has a driver")
    sentence = refused(baseline(ffm, tmp_path, "/bin/true"))
    assert "There is none on this machine: the dynamic linker finds no libcuda.so.1" in sentence


def test_a_program_that_fails_before_it_loads_a_driver(ffm: Ffm, tmp_path: Path) -> None:
    sentence = refused(baseline(ffm, tmp_path, "/bin/sh", "-c", "echo no data >&2; exit 4"))
    assert "exited with code 4 before it used a CUDA driver" in sentence
    assert 'baseline.log, and ends with "no data".' in sentence
    assert "`ffm doctor`" in sentence
    assert "no data" in (tmp_path / "results" / "baseline.log").read_text()


def test_a_program_that_exceeds_its_limit_before_it_loads_a_driver(ffm: Ffm, tmp_path: Path) -> None:
    sentence = refused(baseline(ffm, tmp_path, "/bin/sleep", "100", limit=0.5))
    assert "exceeded the time limit of 0.5 s before it used a CUDA driver" in sentence
    assert "--timeout" in sentence and "ffm doctor" not in sentence


def test_a_program_whose_library_is_missing(ffm: Ffm, tmp_path: Path) -> None:
    library, program = tmp_path / "libmissing.so", tmp_path / "program"
    subprocess.run(["gcc", "-shared", "-x", "c", "-o", library, "-"], input=b"int here(void) { return 0; }", check=True)
    source = b"int here(void); int main(void) { return here(); }"
    subprocess.run(["gcc", "-x", "c", "-o", program, "-", f"-L{tmp_path}", "-lmissing"], input=source, check=True)
    library.unlink()
    sentence = refused(baseline(ffm, tmp_path, program))
    assert "was not loaded" in sentence
    assert "libmissing.so" in (tmp_path / "results" / "baseline.log").read_text()


def test_a_statically_linked_program(ffm: Ffm, tmp_path: Path) -> None:
    (tmp_path / "static.c").write_text("int main(void) { return 0; }")
    subprocess.run(["gcc", "-static", "-o", "static", "static.c"], cwd=tmp_path, check=True)
    assert "statically" in refused(baseline(ffm, tmp_path, "./static"))


@pytest.mark.parametrize(
    ("how", "said"),
    [
        ("fail", "exited with code 3"),
        ("crash", "was ended by the signal SIGSEGV"),
        ("abort", "was ended by the signal SIGABRT"),
        ("kill", "was ended by the signal SIGKILL"),
    ],
)
def test_a_program_that_fails_keeps_its_recording(ffm: Ffm, ending: Path, tmp_path: Path, how: str, said: str) -> None:
    sentence = refused(baseline(ffm, tmp_path, ending, how))
    assert said in sentence
    assert "baseline.log" in sentence
    (recording,) = read_recordings(tmp_path / "results" / "recordings" / "baseline")
    assert len(recording.operations) > 0
    assert (tmp_path / "results" / "baseline.log").read_text() == "sum 0\n"


def test_a_failed_run_is_not_analysed(ffm: Ffm, ending: Path, tmp_path: Path) -> None:
    for stage in ("baseline", "tracing", "memory"):
        assert ffm("stage", stage, "--results", tmp_path, "--", ending).code == 0
    last = ffm("stage", "sync-use", "--results", tmp_path, "--", ending, "fail")
    assert "--accept-status 3" in refused(last)
    assert "exited with code 3 in the sync-use run" in refused(ffm("stage", "analysis", "--results", tmp_path))


def test_failure_in_a_traced_run_names_the_other_watch(ffm: Ffm, ending: Path, tmp_path: Path) -> None:
    for stage in ("baseline", "tracing"):
        assert ffm("stage", stage, "--results", tmp_path, "--", ending).code == 0
    traced = refused(ffm("stage", "memory", "--watch", "trace", "--results", tmp_path, "--", ending, "fail"))
    assert "Use `--watch pages` for these" in traced
    assert "--watch" not in refused(ffm("stage", "memory", "--results", tmp_path, "--", ending, "fail"))


def test_a_program_may_end_with_the_accepted_status(ffm: Ffm, ending: Path, tmp_path: Path) -> None:
    options = ("--results", tmp_path, "--accept-status", 3, "--", ending, "fail")
    for stage in ("baseline", "tracing", "memory", "sync-use"):
        done = ffm("stage", stage, *options)
        assert done.code == 0, done.err
    assert ffm("stage", "analysis", "--results", tmp_path).code == 0
    other = ffm("stage", "baseline", "--results", tmp_path, "--accept-status", 4, "--", ending, "fail")
    assert "exited with code 3" in refused(other)


@pytest.mark.parametrize(
    ("how", "said"),
    [
        ("large", "No call of {program} to the driver succeeded. The first of 1, cuMemAlloc_v2, answered "
                  "CUDA_ERROR_OUT_OF_MEMORY (2)"),
        ("count", "did not use the GPU"),
    ],
)  # fmt: skip
def test_a_program_without_a_successful_call(
    ffm: Ffm, build_program: Callable[[Path], Path], tmp_path: Path, how: str, said: str
) -> None:
    program = build_program(PROGRAMS / "refused.cu")
    assert said.format(program=program) in refused(baseline(ffm, tmp_path, program, how))


def test_a_program_that_never_waits(ffm: Ffm, build_program: Callable[[Path], Path], tmp_path: Path) -> None:
    done = baseline(ffm, tmp_path, build_program(PROGRAMS / "refused.cu"), "small")
    assert done.code == 0, done.err


def test_a_program_that_runs_past_the_limit(ffm: Ffm, ending: Path, tmp_path: Path) -> None:
    sentence = refused(baseline(ffm, tmp_path, ending, "hang", limit=2))
    assert "exceeded the time limit of 2 s" in sentence and "--timeout" in sentence and "--for" in sentence
    assert "Fix the program" not in sentence
    (recording,) = read_recordings(tmp_path / "results" / "recordings" / "baseline")
    assert len(recording.operations) > 0


def test_a_stage_without_the_one_before_it(ffm: Ffm, ending: Path, tmp_path: Path) -> None:
    sentence = refused(ffm("stage", "tracing", "--results", tmp_path / "empty", "--", ending))
    assert "baseline.json does not exist" in sentence
    assert "ffm stage baseline" in sentence


def test_a_results_folder_that_cannot_be_made(ffm: Ffm, ending: Path, tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    assert "cannot be written" in refused(ffm("stage", "baseline", "--results", tmp_path / "file" / "in", "--", ending))


@pytest.mark.skipif(os.geteuid() != 0, reason="mounting a small file system needs root")
@pytest.mark.parametrize(
    ("room", "said"),
    [
        pytest.param("16k", "The disk filled up", id="while the program runs"),
        pytest.param("40k", "No space left on device. Make room", id="when the document is written"),
    ],
)
def test_a_disk_that_fills_up(ffm: Ffm, ending: Path, tmp_path: Path, room: str, said: str) -> None:
    mounted = subprocess.run(["mount", "-t", "tmpfs", "-o", f"size={room}", "tmpfs", tmp_path], check=False)
    if mounted.returncode:
        pytest.skip("a small file system cannot be mounted here")
    try:
        sentence = refused(baseline(ffm, tmp_path, ending, ""))
    finally:
        subprocess.run(["umount", "--lazy", tmp_path], check=True)
    assert said in sentence
    assert "--results" in sentence
