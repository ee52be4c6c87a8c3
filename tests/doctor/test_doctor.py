"""`ffm doctor` says what a machine allows, and fails if nothing can be measured."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import platformdirs
import pytest

from ffm.doctor.diagnosis import State, diagnose
from ffm.doctor.examination import ESSENTIAL, HOOKED, LOST, examine_driver
from ffm.doctor.trial import try_all
from ffm.driver.catalogue import load_catalogue
from ffm.driver.library import read_library
from ffm.driver.search import find_driver
from ffm.driver.vocabulary import Kind
from ffm.instrument.session import permissions
from ffm.vgpu.paths import library_folder
from tests.processes import run_to_end

CATALOGUE = load_catalogue()
SECONDS = 300.0
"""More than a search for the wait function takes on a busy machine."""


@pytest.fixture(scope="module")
def driver() -> Path:
    return library_folder() / "libcuda.so.1"


def doctor(*arguments: str | Path, **environment: str) -> subprocess.CompletedProcess[str]:
    return run_to_end(
        [sys.executable, "-m", "ffm", "doctor", *map(str, arguments)],
        seconds=SECONDS,
        environment={**os.environ, "COLUMNS": "200", **environment},
    )


def test_a_machine_that_measures_is_ready(driver: Path, tmp_path: Path) -> None:
    done = doctor("--driver", driver, "--probe", XDG_CACHE_HOME=str(tmp_path))
    assert done.returncode == 0, done.stdout + done.stderr
    assert "Programs can be measured" in done.stdout
    assert not any(line.endswith(" ") for line in done.stdout.splitlines())
    assert "sm_90" in done.stdout
    assert "checked with cuCtxSynchronize" in " ".join(done.stdout.split())
    # The probe's result is remembered for measurements.
    assert list(tmp_path.rglob("*.wait.json"))


def test_the_driver_is_found_as_a_program_would_find_it(driver: Path) -> None:
    done = doctor("--json", LD_LIBRARY_PATH=str(driver.parent))
    found = json.loads(done.stdout)
    assert done.returncode == 0
    assert Path(found["examination"]["path"]).samefile(driver)
    assert found["examination"]["identity"] == read_library(driver).build_id
    assert found["examination"]["cuda_version"] == 13000
    assert found["examination"]["compute_capability"] == [9, 0]


def test_without_a_driver_nothing_can_be_measured(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("ffm.doctor.diagnosis.find_driver", lambda: None)
    diagnosis = diagnose(None, probe=False)
    assert not diagnosis.ready
    (missing,) = [finding for finding in diagnosis.findings if finding.state is State.MISSING]
    assert missing.subject == "driver"
    assert "--driver" in missing.says


def test_no_library_of_a_name_is_no_driver() -> None:
    assert find_driver("libno-such-driver.so.1") is None


def test_a_library_that_is_no_driver_is_named(tmp_path: Path) -> None:
    library = tmp_path / "libcuda.so.1"
    source = tmp_path / "empty.c"
    source.write_text("int nothing(void) { return 0; }\n")
    subprocess.run(["gcc", "-shared", "-fPIC", "-o", str(library), str(source)], check=True)
    done = doctor("--driver", library)
    assert done.returncode == 1
    assert "is not a CUDA driver" in done.stdout


def test_a_file_that_cannot_be_loaded_is_the_files_fault(tmp_path: Path) -> None:
    cut = tmp_path / "libcuda.so.1"
    cut.write_bytes(b"\x7fELF")
    done = doctor("--driver", cut)
    assert done.returncode == 1
    said = " ".join(done.stdout.split())
    assert "cannot be loaded" in said and "Name NVIDIA's driver" in said
    assert "confines" not in said


def test_a_driver_without_a_gpu_is_missing_one(driver: Path, tmp_path: Path) -> None:
    wrong = tmp_path / "wrong.vgpu"
    wrong.write_text("no.such.key = 1\n")
    done = doctor("--driver", driver, VGPU_CONFIGURATION=str(wrong))
    assert done.returncode == 1
    assert "cuInit returns" in done.stdout


def test_every_exported_function_of_the_catalogue_is_hooked(driver: Path) -> None:
    found = examine_driver(str(driver))
    exports = read_library(driver).exports
    assert {hook.function for hook in found.hooks} == {name for name in exports if name in CATALOGUE}
    assert found.unhooked == ()
    assert found.unknown_exports == ()
    assert found.unknown_entry_points == ()
    # The calls of the examined process went through the hooks.
    assert found.recorded >= len(found.entry_points) > 100


def test_functions_that_the_catalogue_does_not_know_are_listed(driver: Path, tmp_path: Path) -> None:
    """A driver with one extra exported function, and one that only `cuGetProcAddress` returns."""
    library = tmp_path / "libcuda.so.1"
    source = tmp_path / "more.c"
    source.write_text(
        """
        #include <string.h>
        int cuInit(unsigned flags) { return (int)flags; }
        int cuDriverGetVersion(int *version) { *version = 13000; return 0; }
        int cuDeviceGet(int *device, int ordinal) { *device = ordinal; return 100; }
        int cuWarpTime(void) { return 7; }
        static int hidden(void) { return 8; }
        int cuGetProcAddress(const char *name, void **pointer, int version, unsigned long flags)
        {
            (void)version, (void)flags;
            if (strcmp(name, "cuHiddenCall") != 0)
                return 500;
            *pointer = (void *)hidden;
            return 0;
        }
        """
    )
    subprocess.run(["gcc", "-shared", "-fPIC", "-o", str(library), str(source)], check=True)
    found = examine_driver(str(library))
    assert found.unknown_exports == ("cuWarpTime",)
    assert {point.asked for point in found.unknown_entry_points} == {"cuHiddenCall"}


def test_two_names_of_one_body_are_hooked_once(driver: Path, tmp_path: Path) -> None:
    library = tmp_path / "libcuda.so.1"
    source = tmp_path / "short.c"
    source.write_text(
        """
        __attribute__((noinline)) int cuInit(unsigned flags) { return flags == 0 ? 100 : 1; }
        int cuDriverGetVersion(int *version) { *version = 13000; return 0; }
        int cuCtxSynchronize(void) { volatile int n = 3; return n; }
        int cuStreamSynchronize(void *) __attribute__((alias("cuCtxSynchronize")));
        """
    )
    subprocess.run(["gcc", "-shared", "-fPIC", "-w", "-o", str(library), str(source)], check=True)
    outcomes = {hook.function: hook for hook in examine_driver(str(library)).hooks}
    shared = {name for name, hook in outcomes.items() if hook.how == "shared"}
    assert shared in ({"cuStreamSynchronize"}, {"cuCtxSynchronize"})


@pytest.mark.parametrize("jump", [".byte 0xe9; .long body - . - 4", ".byte 0xeb, body - . - 1"], ids=["near", "short"])
def test_a_name_that_jumps_to_the_body_of_another_is_hooked_with_it(driver: Path, tmp_path: Path, jump: str) -> None:
    library = tmp_path / "libcuda.so.1"
    source = tmp_path / "jumping.c"
    source.write_text(
        f"""
        int cuInit(unsigned flags) {{ return flags == 0 ? 100 : 1; }}
        int cuDriverGetVersion(int *version) {{ *version = 13000; return 0; }}
        static __attribute__((used)) int body(void) {{ volatile int n = 3; return n; }}
        int cuCtxSynchronize(void) __attribute__((alias("body")));
        __asm__(".globl cuStreamSynchronize; .type cuStreamSynchronize, @function; cuStreamSynchronize: {jump}");
        """
    )
    subprocess.run(["gcc", "-shared", "-fPIC", "-w", "-o", str(library), str(source)], check=True)
    outcomes = {hook.function: (hook.how, hook.reason) for hook in examine_driver(str(library)).hooks}
    first, second = (outcomes[name] for name in ("cuCtxSynchronize", "cuStreamSynchronize"))
    assert {first[0], second[0]} == {"replace-fast", "shared"}
    assert {first[1], second[1]} < {"", "cuCtxSynchronize", "cuStreamSynchronize"}


def test_every_export_can_be_tried(driver: Path) -> None:
    trials = try_all(driver)
    names = {name for trial in trials for name in trial.names}
    assert names == {name for name in read_library(driver).exports if name.startswith("cu")}
    assert {trial.how for trial in trials} <= {"replace-fast", "attach"}


def test_each_kind_says_what_is_lost_without_it() -> None:
    assert LOST.keys() == set(Kind)
    assert LOST.keys() >= ESSENTIAL
    assert "failed" not in HOOKED


def test_a_temporary_folder_that_does_not_execute_is_reported(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    class Mounted:
        f_flag = os.ST_NOEXEC

    monkeypatch.setattr(permissions.tempfile, "gettempdir", lambda: str(tmp_path))
    monkeypatch.setattr(permissions.os, "statvfs", lambda _folder: Mounted)
    (check,) = [check for check in permissions.check_machine() if check.subject == "temporary folder"]
    assert not check.good
    assert "TMPDIR" in check.says


@pytest.mark.parametrize(
    ("scope", "capable", "good"),
    [(0, False, True), (1, False, True), (2, False, False), (2, True, True), (3, True, False)],
)
def test_yama_decides_who_may_attach(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, scope: int, capable: bool, good: bool
) -> None:
    setting = tmp_path / "ptrace_scope"
    setting.write_text(f"{scope}\n")
    monkeypatch.setattr(permissions, "_YAMA", setting)
    monkeypatch.setattr(permissions, "_capable", lambda _capability: capable)
    (check,) = [check for check in permissions.check_machine() if check.subject == "ptrace"]
    assert check.good == good


def test_what_was_found_before_is_shown_without_a_probe(
    driver: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(platformdirs, "user_cache_dir", lambda name: str(tmp_path / name))
    first = diagnose(driver, probe=False)
    assert first.wait_function is None
    assert first.ready
    probed = diagnose(driver, probe=True)
    assert probed.wait_function is not None
    assert diagnose(driver, probe=False).wait_function == probed.wait_function
