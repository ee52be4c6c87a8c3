"""Fixtures that many tests share."""

from __future__ import annotations

import gc
import os
import signal
import subprocess
import sys
from collections.abc import Callable, Generator, Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest
from hypothesis import is_hypothesis_test

from ffm.model import compiled
from tests.examples import register_profiles
from tests.server import Done, Server
from tests.thinning import leave_variants

ROOT = Path(__file__).resolve().parents[1]


register_profiles()


LONGEST = (
    "planted/test_planted.py",
    "instrument/test_wait_function_shapes.py",
    "pipeline/test_endless.py",
    "remedy/test_safe_downloads.py",
    "remedy/test_safety.py",
    "remedy/test_apply_remedy.py",
    "model/test_devices.py",
    "vgpu/instructions/test_conformance.py",
    "docs/test_tutorial.py",
    "cli/test_run.py",
    "model/estimators/test_replay.py",
    "pipeline/test_measured_als.py",
    "testing/test_plugin.py",
    "pipeline/test_portions.py",
    "planted/test_trace.py",
    "instrument/test_wait_function.py",
    "sources/test_nsight.py",
    "model/test_compiled.py",
    "model/waiting/test_path.py",
    "faults/test_measurements.py",
    "doctor/test_doctor.py",
    "remedy/test_timed_downloads.py",
    "sources/test_otf2.py",
    "pipeline/test_gate.py",
    "samples/test_device_code.py",
    "pipeline/test_interruption.py",
    "model/groups/test_sequences.py",
    "pipeline/test_bad_programs.py",
    "faults/test_campaign.py",
    "faults/test_bad_kinds.py",
    "vgpu/test_device_code.py",
    "faults/test_full_disk.py",
    "pipeline/test_scheduler.py",
    "pipeline/test_chosen_sites.py",
    "sources/test_pytorch.py",
    "pipeline/test_detaching.py",
    "driver/test_real_driver_hooks.py",
    "pipeline/test_ranks.py",
)
"""Files whose tests take longer than most, 10 s of the processor or more, longest first."""


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Generator[None, object, object]:
    """Look for garbage neither while tests are collected nor, later, among what was collected: it all stays."""
    gc.disable()
    try:
        return (yield)
    finally:
        gc.freeze()
        gc.enable()


@pytest.hookimpl(tryfirst=True)  # before pytest selects by markers
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Leave variants to `make thorough`, and begin the longest files first: processes that run whole files then end at
    about the same time.

    Coverage leaves property tests out, which it would make twice as slow: worked examples reach the same lines. It also
    leaves out tests that read ffm's sources instead of running them.
    """
    leave_variants(items)
    begin = {ROOT / "tests" / name: place for place, name in enumerate(LONGEST)}
    items.sort(key=lambda item: begin.get(item.path, len(begin)))
    for item in items:
        reads = any(item.path.is_relative_to(ROOT / "tests" / place) for place in READING)
        if reads or (isinstance(item, pytest.Function) and is_hypothesis_test(item.obj)):
            item.add_marker("no_cover")


READING = ("docs", "test_errors.py")
"""Where tests are that read sources and pages."""


def pytest_configure() -> None:
    """Let tests signal programs: `nohup` ignores hangups, and a shell makes its background jobs ignore interrupts."""
    for number, action in ((signal.SIGINT, signal.default_int_handler), (signal.SIGHUP, signal.SIG_DFL)):
        if signal.getsignal(number) is signal.SIG_IGN:
            signal.signal(number, action)


@pytest.fixture(autouse=True)
def _rows_of_one_test(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let no test before this one decide whether a kernel is compiled."""
    monkeypatch.setattr(compiled, "_done", {})


def cuda_include() -> Path:
    """Folder of CUDA's headers."""
    for folder in sys.path:
        candidate = Path(folder) / "nvidia" / "cu13" / "include"
        if (candidate / "cuda.h").exists():
            return candidate
    pytest.skip("cuda.h is not installed (package nvidia-cuda-runtime)")


@dataclass(frozen=True, slots=True)
class Finished:
    """A command that ran to its end."""

    code: int
    out: str
    err: str


Ffm = Callable[..., Finished]


@pytest.fixture(scope="session")
def ffm_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """Where `ffm` runs."""
    with Server(tmp_path_factory.mktemp("server")) as started:
        yield started


@pytest.fixture(scope="session")
def ffm(ffm_server: Server) -> Ffm:
    """Run `ffm` with some arguments, in a folder."""

    def run(*arguments: str | Path, folder: Path | None = None, seconds: float = 120) -> Finished:
        environment = {**os.environ, "COLUMNS": "100"}
        done = ffm_server.run([*map(str, arguments)], folder or Path.cwd(), environment, seconds)
        assert not done.hung, f"ffm did not end within {seconds} s: {done.errors}"
        return Finished(done.code, done.output, done.errors)

    return run


class Begun:
    """`ffm` that runs meanwhile; no other one can be run by its server before it was waited for."""

    def __init__(self, server: Server, process: int) -> None:
        self.process = process
        self._server = server
        self._done: Done | None = None

    def ended(self) -> bool:
        return self._done is not None or self._server.ended()

    def tell(self, number: int) -> None:
        """Send a signal to ffm alone, unless it has ended."""
        if self._done is None:
            os.kill(self.process, number)

    def wait(self, seconds: float) -> Finished:
        """Wait for the end."""
        if self._done is None:
            self._done = self._server.wait(seconds)
        assert not self._done.hung, f"ffm did not end within {seconds} s: {self._done.errors}"
        return Finished(self._done.code, self._done.output, self._done.errors)


Begin = Callable[..., Begun]


@pytest.fixture
def begin_ffm(ffm_server: Server) -> Iterator[Begin]:
    """Begin `ffm` with some arguments; a test that fails meanwhile has it killed."""
    started: list[Begun] = []

    def begin(*arguments: str | Path) -> Begun:
        process = ffm_server.begin([*map(str, arguments)], Path.cwd(), {**os.environ, "COLUMNS": "100"})
        started.append(Begun(ffm_server, process))
        return started[-1]

    yield begin
    for begun in started:
        begun.tell(signal.SIGKILL)
        begun.wait(SECONDS_TO_DIE)


SECONDS_TO_DIE = 60.0
"""More than a killed process takes on a busy machine."""


@pytest.fixture(scope="session")
def build_program(tmp_path_factory: pytest.TempPathFactory) -> Callable[..., Path]:
    """Compile a CUDA source for the virtual GPU, with further options; each source once."""
    from ffm.vgpu.paths import library_folder

    folder = tmp_path_factory.mktemp("programs")
    headers = ROOT / "ffm" / "vgpu" / "include"

    def build(source: Path, *options: str) -> Path:
        program = folder / source.stem
        if not program.exists():
            subprocess.run(
                [
                    "g++", "-std=c++17", "-O1", "-g", "-x", "c++", str(source), "-o", str(program),
                    f"-I{headers}", "-isystem", str(cuda_include()),
                    f"-L{library_folder()}", "-lcudart", f"-Wl,-rpath,{library_folder()}", "-lpthread", *options,
                ],
                check=True,
            )  # fmt: skip
        return program

    return build
