"""The gate, at which each process of the program is instrumented before it starts."""

from __future__ import annotations

import contextlib
import errno
import os
import select
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest

from ffm.driver.catalogue import load_catalogue
from ffm.errors import InstrumentError
from ffm.instrument.library import native_library
from ffm.instrument.session import held_times, runner
from ffm.instrument.session.attaching import UnresponsiveError
from ffm.instrument.session.cut import Lasting
from ffm.instrument.session.gate import NO_DRIVER, STARTED, Gate
from ffm.vgpu.paths import library_folder

PATIENCE = 60.0
"""Seconds for what takes a few on an idle machine."""


class NoWait:
    offsets: tuple[int, ...] = ()


PROGRAM = """
import ctypes, sys, threading, time
asleep = ctypes.CDLL(sys.argv[1]).ffm_gate_others_sleep
asleep.restype = ctypes.c_bool

def within(seconds, wanted):
    end = time.monotonic() + seconds
    while asleep() != wanted:
        if time.monotonic() > end:
            sys.exit(f"not {wanted}")

assert asleep()  # alone
sleeper = threading.Event()
threading.Thread(target=sleeper.wait, name="a ) R strange name", daemon=True).start()
within(20, True)

change = ctypes.CDLL(None).memfrob  # without the interpreter's lock
memory = ctypes.create_string_buffer(1 << 20)
running = True

def work():
    while running:
        change(memory, len(memory))

worker = threading.Thread(target=work)
worker.start()
within(20, False)
running = False
worker.join()
within(20, True)
"""


def test_whether_other_threads_sleep() -> None:
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM, str(native_library("libffm_gate.so"))],
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert (done.returncode, done.stderr) == (0, "")


ZONE = """
import ctypes
library = ctypes.CDLL(None)
zone = (ctypes.c_int * 2)(7, 7)
assert library.gettimeofday(None, zone) == 0
print(list(zone))
"""


def test_a_program_may_ask_for_the_time_zone_alone() -> None:
    preloaded = {**os.environ, "LD_PRELOAD": str(native_library("libffm_gate.so"))}
    bare, gated = (
        subprocess.run([sys.executable, "-c", ZONE], env=environment, capture_output=True, text=True, check=False)
        for environment in (dict(os.environ), preloaded)
    )
    assert (gated.returncode, gated.stdout) == (bare.returncode, bare.stdout) == (0, bare.stdout)


TRACED = """
import ctypes, os, signal
library = ctypes.CDLL(None, use_errno=True)
print(library.ptrace(0, 0, None, None), library.ptrace(0, 0, None, None), ctypes.get_errno())
signal.signal(signal.SIGUSR1, lambda *_: print("went on"))
os.kill(os.getpid(), signal.SIGUSR1)
"""


def test_a_program_that_asks_the_runner_to_trace_it_goes_on() -> None:
    """Its signals would stop it for ever: nobody lets it continue."""
    with Gate(lambda *_: None) as gate:
        done = subprocess.run(
            [sys.executable, "-u", "-c", TRACED],
            env=gate.environment(dict(os.environ)),
            capture_output=True,
            text=True,
            check=False,
            timeout=60,
        )
    assert (done.returncode, done.stdout, done.stderr) == (0, f"0 -1 {errno.EPERM}\nwent on\n", "")


@pytest.mark.parametrize("before", [True, False], ids=["before Frida says so", "after"])
def test_a_program_that_dies_at_the_gate_is_not_said_to_have_failed_itself(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, before: bool
) -> None:
    def die(_run: object, process_id: int) -> None:
        if before:
            process = os.pidfd_open(process_id)
            os.kill(process_id, signal.SIGSEGV)
            select.select([process], [], [])  # its end
            os.close(process)
        else:
            threading.Timer(0.1, os.kill, (process_id, signal.SIGSEGV)).start()
        raise InstrumentError("Frida could not attach to it.")

    monkeypatch.setattr(runner.Hooking, "attach", die)
    nothing = runner.Instruments(tmp_path, [], 0, None, lambda _: pytest.fail("there is no driver"))
    with pytest.raises(InstrumentError, match="SIGSEGV while the instruments were put into it, before it began"):
        runner.run_instrumented(["/bin/true"], nothing, output=tmp_path / "output")


class GivesUp:
    """In place of `Hooking.attach`: Frida gives up on the first processes, and gets into no other."""

    def __init__(self, times: int) -> None:
        self.times = times
        self.seen: list[int] = []

    def __call__(self, process_id: int) -> None:
        self.seen.append(process_id)
        if len(self.seen) <= self.times:
            raise UnresponsiveError("Frida did not get into it in time.")


@pytest.mark.parametrize("times", [1, runner.STARTS - 1])
def test_a_program_that_frida_gave_up_on_is_started_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, times: int
) -> None:
    attach = GivesUp(times)
    monkeypatch.setattr(runner.Hooking, "attach", lambda _, process_id: attach(process_id))
    nothing = runner.Instruments(tmp_path, [], 0, None, lambda _: pytest.fail("there is no driver"))
    begins = tmp_path / "begins"
    command = ["/bin/sh", "-c", f"echo >> {begins}"]
    outcome = runner.run_instrumented(command, nothing, output=tmp_path / "output")
    assert str(outcome.ending) == "exited with code 0"
    assert begins.read_text() == "\n", "it began once"
    assert len(set(attach.seen)) == times + 1


def test_a_program_that_frida_always_gives_up_on_fails(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    attach = GivesUp(runner.STARTS)
    monkeypatch.setattr(runner.Hooking, "attach", lambda _, process_id: attach(process_id))
    nothing = runner.Instruments(tmp_path, [], 0, None, lambda _: pytest.fail("there is no driver"))
    begins = tmp_path / "begins"
    with pytest.raises(UnresponsiveError, match="in time"):
        runner.run_instrumented(["/bin/sh", "-c", f"echo >> {begins}"], nothing, output=tmp_path / "output")
    assert not begins.exists()


def test_a_program_that_has_begun_is_not_started_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    arrived: list[int] = []

    def only_first(_run: object, process_id: int) -> None:
        arrived.append(process_id)
        if len(arrived) > 1:
            raise UnresponsiveError("Frida did not get into it in time.")

    monkeypatch.setattr(runner.Hooking, "attach", only_first)
    nothing = runner.Instruments(tmp_path, [], 0, None, lambda _: pytest.fail("there is no driver"))
    with pytest.raises(InstrumentError, match="in time"):
        runner.run_instrumented(["/bin/sh", "-c", "exec /bin/true"], nothing, output=tmp_path / "output")
    assert len(arrived) == 2


def test_what_is_hooked_is_known_even_if_the_program_ends_at_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    add = held_times.HeldTimes.add

    def late(times: held_times.HeldTimes, process: int, began: float) -> None:
        """Delay the thread before it takes its next message, as a busy machine does."""
        time.sleep(0.5)
        add(times, process, began)

    monkeypatch.setattr(held_times.HeldTimes, "add", late)
    functions = [function.name for function in load_catalogue().functions]
    instruments = runner.Instruments(tmp_path, functions, 0, None, lambda _: NoWait())
    command = [sys.executable, "-c", f"import ctypes; ctypes.CDLL({str(library_folder() / 'libcuda.so.1')!r})"]
    outcome = runner.run_instrumented(command, instruments, output=tmp_path / "output")
    assert str(outcome.ending) == "exited with code 0"
    assert "cuLaunchKernel" in {function for function, _, _ in outcome.processes[0].hooks}


def test_a_program_that_is_left_while_it_loads_the_driver_runs_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked, left = threading.Event(), threading.Event()
    leave = runner.Hooking.leave

    class UntilAsked(Lasting):
        def is_over(self, *_: object) -> bool:
            return asked.is_set()

    def leaving(hooking: runner.Hooking) -> None:
        leave(hooking)
        left.set()

    def late(_: Path) -> NoWait:
        """Know what to hook once the program is left."""
        asked.set()
        assert left.wait(PATIENCE)
        return NoWait()

    monkeypatch.setattr(runner.Hooking, "leave", leaving)
    instruments = runner.Instruments(tmp_path, [], 0, None, late, lasting=UntilAsked(0.0), leave=True)
    load = f"import ctypes, sys; ctypes.CDLL({str(library_folder() / 'libcuda.so.1')!r}); open(sys.argv[1], 'x')"
    loaded = tmp_path / "loaded"
    outcome = runner.run_instrumented(
        [sys.executable, "-c", load, str(loaded)], instruments, output=tmp_path / "output"
    )
    end = time.monotonic() + PATIENCE
    while not loaded.exists() and time.monotonic() < end:
        time.sleep(0.05)
    with contextlib.suppress(ProcessLookupError):
        os.kill(outcome.processes[0].process_id, signal.SIGKILL)
    assert loaded.exists()


@pytest.fixture(scope="module")
def executes(tmp_path_factory: pytest.TempPathFactory) -> Path:
    program = tmp_path_factory.mktemp("executes") / "executes"
    subprocess.run(["gcc", "-o", program, Path(__file__).parent / "programs" / "executes.c"], check=True)
    return program


WAYS = ("execve", "execle", "execvpe", "fexecve", "execveat", "posix_spawn", "vfork", "system", "many", "preloading")


@pytest.mark.parametrize("way", [*WAYS, "nothing"])
def test_a_program_comes_to_the_gate_whatever_environment_it_is_given(executes: Path, way: str) -> None:
    """It finds the environment that it was given: `env` prints the same as without the gate."""
    arrived: list[str] = []
    with Gate(lambda process, _: arrived.append((Path("/proc") / str(process) / "exe").readlink().name)) as gate:
        bare, gated = (
            subprocess.run([executes, way], env=environment, capture_output=True, text=True, check=False)
            for environment in (dict(os.environ), gate.environment(dict(os.environ)))
        )
    assert (gated.returncode, gated.stdout, gated.stderr) == (bare.returncode, bare.stdout, bare.stderr)
    assert bare.returncode == 0 and (way == "nothing" or bare.stdout)
    assert (arrived[0], arrived[-1]) == ("executes", "env")


def test_what_lies_at_the_gate_is_in_the_given_folder(tmp_path: Path) -> None:
    with Gate(lambda *_: None, tmp_path) as gate:
        assert gate.path.is_relative_to(tmp_path)
        assert list(tmp_path.iterdir())
    assert not list(tmp_path.iterdir())


def test_a_folder_that_is_too_deep_for_a_socket_is_no_obstacle(tmp_path: Path) -> None:
    deep = tmp_path / ("a" * 120)
    deep.mkdir()
    with Gate(lambda *_: None, deep) as gate:
        assert gate.path.is_socket()
    assert not gate.path.parent.exists() and not list(deep.iterdir())


PLAIN = """
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>
int main(void)
{
    const pid_t child = fork();
    if (child == 0)
        _exit(0);
    waitpid(child, NULL, 0);
    return 0;
}
"""

LOADING = """
#include <dlfcn.h>
int main(void) { return dlopen("libabsent.so", RTLD_NOW) != 0; }
"""


@pytest.mark.parametrize(
    ("source", "options", "reasons"),
    [(PLAIN, [], [NO_DRIVER, NO_DRIVER]), (LOADING, [], [STARTED]), (LOADING, ["-no-pie"], [STARTED])],
    ids=["cannot", "can", "can, at a fixed address"],
)
def test_a_process_says_whether_it_can_load_a_driver(
    source: str, options: list[str], reasons: list[int], tmp_path: Path
) -> None:
    program, arrived = tmp_path / "program", list[int]()
    subprocess.run(["gcc", "-x", "c", *options, "-o", program, "-", "-ldl"], input=source, text=True, check=True)
    with Gate(lambda _, reason: arrived.append(reason)) as gate:
        subprocess.run([program], env=gate.environment(dict(os.environ)), check=True, timeout=60)
    assert arrived == reasons


def test_a_process_that_is_linked_with_a_library_that_loads_others_can_load_a_driver(tmp_path: Path) -> None:
    library, program, arrived = tmp_path / "libloading.so", tmp_path / "program", list[int]()
    subprocess.run(
        ["gcc", "-x", "c", "-shared", "-fPIC", "-Dmain=loading", "-o", library, "-", "-ldl"],
        input=LOADING, text=True, check=True,
    )  # fmt: skip
    subprocess.run(
        ["gcc", "-x", "c", "-o", program, "-", f"-L{tmp_path}", "-lloading", f"-Wl,-rpath,{tmp_path}"],
        input="int loading(void); int main(void) { return loading(); }", text=True, check=True,
    )  # fmt: skip
    with Gate(lambda _, reason: arrived.append(reason)) as gate:
        subprocess.run([program], env=gate.environment(dict(os.environ)), check=True, timeout=60)
    assert arrived == [STARTED]


def test_nothing_is_put_into_a_child_that_cannot_load_a_driver(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    program, attached = tmp_path / "program", list[int]()
    subprocess.run(["gcc", "-x", "c", "-o", program, "-"], input=PLAIN, text=True, check=True)
    monkeypatch.setattr(runner.Hooking, "attach", lambda _, process_id: attached.append(process_id))
    nothing = runner.Instruments(tmp_path, [], 0, None, lambda _: pytest.fail("there is no driver"))
    command = [sys.executable, "-c", f"import subprocess; subprocess.run([{str(program)!r}], check=True)"]
    outcome = runner.run_instrumented(command, nothing, output=tmp_path / "output")
    assert str(outcome.ending) == "exited with code 0"
    assert len(attached) == 1


def test_nothing_is_put_into_a_shell_and_its_subshells_but_into_what_they_execute(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    program, attached = tmp_path / "program", list[str]()
    subprocess.run(["gcc", "-x", "c", "-o", program, "-", "-ldl"], input=LOADING, text=True, check=True)
    monkeypatch.setattr(runner.Hooking, "attach", lambda _, process_id: attached.append(running(process_id)))
    nothing = runner.Instruments(tmp_path, [], 0, None, lambda _: pytest.fail("there is no driver"))
    script = f"(:); (:); test -n $({program}); {program}; exit 0"
    command = [sys.executable, "-c", f"import subprocess; subprocess.run(['bash', '-c', {script!r}], check=True)"]
    outcome = runner.run_instrumented(command, nothing, output=tmp_path / "output")
    assert str(outcome.ending) == "exited with code 0"
    assert attached[1:] == ["program", "program"] and attached[0].startswith("python")


def running(process_id: int) -> str:
    """Return the name of the program that a process runs."""
    return Path(f"/proc/{process_id}/exe").readlink().name
