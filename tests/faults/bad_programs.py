"""Bad programs, by kind, and what must hold for each under the stages.

Either a program is measured, with the same end and the same output as without ffm, within the time, and with all of its
waits, or one sentence says what cannot be measured. Nothing is left behind. `python -m tests.faults.bad_programs` tries
all, or those that are named, and prints counts.
"""

from __future__ import annotations

import argparse
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

from ffm.driver.catalogue import load_catalogue
from ffm.errors import InstrumentError
from ffm.instrument.recording.reader import read_recordings
from ffm.results.folder.paths import STAGES
from ffm.whole_file import LEFTOVER
from tests.conftest import cuda_include, pytest_configure
from tests.server import Done, Server

SOURCES = Path(__file__).parent / "programs" / "bad"
SECONDS = 60.0
BAD = ("hangs", "tracebacks", "crashes", "silent losses", "leftovers", "outlived", "misled", "changed")
TURNS = 5
"""Waits that `use_gpu` makes."""

ENDING = tuple(
    number for number in signal.valid_signals()
    if number not in {signal.SIGSTOP, signal.SIGTSTP, signal.SIGTTIN, signal.SIGTTOU, signal.SIGCHLD, signal.SIGCONT,
                      signal.SIGURG, signal.SIGWINCH}
    and (number < signal.SIGRTMIN or number in (signal.SIGRTMIN + 3, signal.SIGRTMAX))
)  # fmt: skip
"""Signals that end a program by themselves; of the real-time ones two."""


@dataclass(frozen=True, slots=True)
class Bad:
    """A bad program, and what must hold of it."""

    thing: str
    """What the program does (`THING` in its sources), or a file that `Ground` makes."""
    when: str = ""
    """`before` the GPU is used, or `between` two uses."""
    option: str = ""
    waits: int = TURNS
    """How many waits stage 2 must see."""
    refused: str = ""
    """Part of the sentence, if it cannot be measured."""
    unwatched: str = ""
    """Part of the sentence of stage 3, if its memory cannot be watched."""
    limits: dict[str, str] = field(default_factory=dict)
    """By stage, part of the difference that docs/limits.md admits there. If it no longer appears, that is an error."""
    environment: dict[str, str] = field(default_factory=dict)
    stages: tuple[str, ...] = STAGES
    more: tuple[str, ...] = ()
    """Further arguments."""

    def __str__(self) -> str:
        more = f"{len(self.more)} arguments of {sum(map(len, self.more))} letters" if self.more else ""
        environment = (f"{name}={value[:20]}" for name, value in self.environment.items())
        return " ".join(filter(None, (self.thing, self.when, self.option, *environment, more)))


def _both(things: str, **how: int) -> list[Bad]:
    return [
        Bad(thing, when, waits=how.get(when, TURNS if when == "before" else 2 * TURNS))
        for thing in things.split()
        for when in ("before", "between")
    ]


def _between(things: str, waits: int = 2 * TURNS) -> list[Bad]:
    return [Bad(thing, "between", waits=waits) for thing in things.split()]


ENDS = [
    *(Bad("by_signal", "between", str(int(number))) for number in ENDING),
    *_between("null illegal breakpoint division overflow beyond_file wild_jump non_canonical aborts", TURNS),
    *(Bad(thing, "between", "3") for thing in ("ends", "ends_at_once", "ends_quickly", "ends_by_call")),
    *_between("at_exit_abort at_exit_exit"), *_between("at_exit_use", 3 * TURNS),
    *(Bad(thing, waits=waits) for thing, waits in
      (("constructor", 10), ("destructor", 10), ("destructor_abort", 5), ("destructor_fault", 5))),
    *_between("exit_in_thread", TURNS),
    *_between("endless_threads endless_users cancels"),
    *_between("main_ends_first", 2 * TURNS),
    *_between("thread_destructor", 3 * TURNS),
    *_between("many_threads", 66 * TURNS),
]  # fmt: skip

PROCESSES = [
    *_both("exec_self exec_in_thread exec_memory exec_unrandomized close_range_on_exec", before=TURNS, between=10),
    *_both("exec_self_without_environment forgets_preloads", before=TURNS, between=10),
    *_between("exec_other", TURNS),
    *_both("child vforks spawns", before=2 * TURNS, between=3 * TURNS),
    *_both("exec_nothing dying_child late_child shell double_fork many_children raw_fork zombie ignores_children"),
    *_both("new_group new_session"),
    *_between("exec_without_environment", TURNS),
    Bad("daemonizes", "before"),
    Bad("child_before_driver", "before", waits=2 * TURNS),
    Bad("driver_in_child", "between", waits=2 * TURNS),
]

DESCRIPTORS = [
    *_both("close_each close_from close_the_range close_listed close_standard onto_standard onto_each"),
    *_both("full_output much_output raw_output"),
    *_between("close_each_raw close_range_raw onto_each_raw"),
    *(
        Bad(thing, "before", refused="closed all descriptors by direct system calls", stages=("baseline",))
        for thing in ("close_each_raw", "close_range_raw", "onto_each_raw")
    ),
    *_between("use_up_descriptors"),
    *_between("broken_output", TURNS),
]

SURROUNDINGS = [
    *_both("in_deleted_folder masks_modes becomes_root few_files small_files small_stack no_stack_limit"),
    *_between("small_data"),
    Bad("small_data", "before", limits={"baseline": "exited with code 9"}, stages=("baseline",)),
    *_both("no_core no_locking no_signals lowest_priority one_processor clears_environment"),
    *_both("overwrites_environment overwrites_arguments"),
    *_between("in_other_root no_files little_memory no_more_memory"),
    *_between("empty_files hard_empty_files"),
    *_between("nobody"),
    Bad("nobody", "before", refused="could not be created", stages=("baseline",)),
    *(
        Bad(thing, "between", refused="changed its user or root folder", stages=("baseline",))
        for thing in ("in_other_root_forks", "nobody_forks")
    ),
    Bad("nothing", environment={"FFM_LARGE": "x" * 100_000}),
    Bad("nothing", environment={"LD_BIND_NOW": "1"}),
    Bad("nothing", environment={"MALLOC_PERTURB_": "165"}),
    Bad("nothing", environment={"LD_PRELOAD": "libm.so.6"}),
    Bad("nothing", environment={"LD_PRELOAD": "/nowhere/libnothing.so"}),
    Bad("nothing", "before", more=("x" * 100_000,)),
    Bad("nothing", "before", more=("x",) * 20_000),
    Bad("nothing", "before", more=("\x1b[31m\n\u00fc", "")),
    Bad("nothing", "before", more=("\udcff",), refused="it is not UTF-8", stages=("baseline",)),
]

STACKS_AND_SIGNALS = [
    *_between("small_thread_stack tiny_thread_stack coroutine other_stack driver_in_handler", 3 * TURNS),
    *_both("blocks_all blocks_all_raw ignores_all defaults_all handles_all keeps_own_segv own_segv_raw"),
    *_both("recovers_segv recovers_bus recovers_fpe recovers_ill recovers_abort own_trap own_sys"),
    *_between("own_segv_once", TURNS),
    *_between("own_dispatch"),
    *_both("real_timer profiling_timer interrupting_timer alarm_later reads_signals stops"),
]

CONFINED = [
    *_both("no_new_privileges not_dumpable renamed dies_with_parent lives_without_parent subreaper no_timestamps"),
    *_both("no_huge_pages no_ptrace no_advice traps_a_call"),
    Bad("no_prctl", "before", unwatched="(seccomp) forbids prctl"),
    *_between("no_prctl"),
    *_between("no_allocation kills_allocation"),
    Bad("no_allocation", "before", refused="could not be created", stages=("baseline",)),
    Bad("kills_allocation", "before", refused="(seccomp) may have ended it", stages=("baseline",)),
    *_both("traced_by_parent traced_by_child"),
    Bad("traces_child", "before"),
    Bad("traces_child", "between", waits=2 * TURNS, limits={"memory": "child -1 0"}),
    *_between("no_opening"),
    *(
        Bad("strict", when, limits={"baseline": "exceeded the time limit"}, stages=("baseline",))
        for when in ("before", "between")
    ),
]

MEMORY = [
    *_both("locks_memory unmaps_nothing reserves_much many_mappings writable_code moves_break huge_allocation"),
    *_between("all_mappings"),
]

DRIVER = [
    *_both("driver_errors context_again closes_driver initializes_often"),
    *_between("no_context after_context context_ends"),
    *_between("pending_at_end", TURNS),
]

FILES = [
    Bad("static", refused="linked statically", stages=("baseline",)),
    Bad("script"),
    Bad("script_without_interpreter", refused="cannot be started", stages=("baseline",)),
    Bad("missing_interpreter", refused="cannot be started", stages=("baseline",)),
    Bad("missing_linker", refused="cannot be started", stages=("baseline",)),
    Bad("empty", refused="cannot be started", stages=("baseline",)),
    Bad("truncated", refused="cannot be started", stages=("baseline",)),
    Bad("for_32_bits", refused="not built for 64-bit x86", stages=("baseline",)),
    Bad("for_another_machine", refused="not built for 64-bit x86", stages=("baseline",)),
    Bad("not_executable", refused="chmod +x", stages=("baseline",)),
    Bad("folder", refused="is a folder", stages=("baseline",)),
    Bad("missing", refused="does not exist", stages=("baseline",)),
    Bad("dangling_link", refused="does not exist", stages=("baseline",)),
    Bad("pipe", refused="not executable", stages=("baseline",)),
]

KINDS: dict[str, list[Bad]] = {
    "ends": ENDS,
    "processes": PROCESSES,
    "descriptors": DESCRIPTORS,
    "surroundings": SURROUNDINGS,
    "stacks and signals": STACKS_AND_SIGNALS,
    "confined": CONFINED,
    "memory": MEMORY,
    "driver": DRIVER,
    "files": FILES,
}


class Ground:
    """A folder with the program, where bad things happen one after the other."""

    def __init__(self, scratch: Path, server: Server) -> None:
        from ffm.vgpu.paths import library_folder

        self.scratch, self._server = scratch, server
        self.program = scratch / "bad"
        subprocess.run(
            ["gcc", "-std=gnu17", "-O1", "-g", *sorted(SOURCES.glob("*.c")), "-o", self.program,
             "-isystem", cuda_include(), f"-Wl,-rpath,{library_folder()}", "-ldl", "-lpthread"],
            check=True,
        )  # fmt: skip

    def tried(self, bad: Bad, most_stages: int = len(STAGES)) -> Iterator[tuple[str, str]]:
        """Try a bad program in each stage; yield what did not hold, with its story."""
        command = [str(self._file(bad))]
        if command == [str(self.program)]:
            command += [*filter(None, (bad.thing, bad.when, bad.option)), *bad.more]
        results, temporary = self.scratch / "results", self.scratch / "tmp"
        for folder in (results, temporary):
            shutil.rmtree(folder, ignore_errors=True)
        temporary.mkdir()
        environment = {**os.environ, "TMPDIR": str(temporary), **bad.environment}
        try:
            bare = None if bad.refused else self._bare(command, environment)
        except subprocess.TimeoutExpired:
            yield "hangs", f"without ffm: it did not end within {SECONDS:g} s, so that no stage can be compared with it"
            return
        for stage in bad.stages[:most_stages]:
            words = ["stage", stage, "--results", str(results)]
            if stage != "analysis":
                words += ["--timeout", str(SECONDS / 2), "--", *command]
            self._server.begin(words, self.scratch, environment)
            done = self._server.wait(SECONDS)
            wrong = list(_judged(bad, bare, stage, done, results))
            if limit := bad.limits.get(stage):
                known = [what for what in wrong if what[0] == "changed" and limit in what[1]]
                wrong = [what for what in wrong if what not in known]
                if not known:
                    wrong.append(("misled", f"the limit {limit!r} is seen no more; docs/limits.md says it is there"))
            yield from ((kind, f"{stage}: {what}") for kind, what in wrong)
            if self._outlived():
                yield "outlived", f"{stage}: a process of the program lived on"
            left = [path.name for path in temporary.iterdir() if path.name.startswith("ffm-")]
            left += [path.name for path in results.rglob("*") if LEFTOVER.fullmatch(path.name)]
            if left:
                yield "leftovers", f"{stage}: {', '.join(left)}"
            if not (results / f"{stage}.json").exists() or (stage == "sync-use" and done.code):
                break

    def _bare(self, command: list[str], environment: dict[str, str]) -> tuple[int, bytes]:
        """Run the program without ffm; its exit code, or minus the signal, and its output.

        Raises:
            subprocess.TimeoutExpired: It did not end in time; it has been killed.
        """
        output = self.scratch / "output"
        with output.open("wb") as file:
            program = subprocess.Popen(
                command, cwd=self.scratch, env=environment, stdin=subprocess.DEVNULL, stdout=file,
                stderr=subprocess.STDOUT, start_new_session=True,
            )  # fmt: skip
            try:
                code = program.wait(SECONDS)
            except subprocess.TimeoutExpired:
                program.kill()
                program.wait()
                raise
            finally:
                self._outlived()
        return code, output.read_bytes()

    def _outlived(self) -> bool:
        for _ in range(500):
            left = [int(entry.name) for entry in Path("/proc").glob("[0-9]*") if _executes(entry, self.program)]
            if not left:
                return False
            time.sleep(0.02)
        for process in left:
            os.kill(process, signal.SIGKILL)
        return True

    def _file(self, bad: Bad) -> Path:
        """Return what is to be run: the program, or a file of a bad kind, which is made here."""
        if all(bad.thing != file.thing for file in FILES):
            return self.program
        path = self.scratch / bad.thing
        shutil.rmtree(path) if path.is_dir() else path.unlink(missing_ok=True)
        elf = self.program.read_bytes()
        contents = {
            "script": f"#!/bin/sh\nexec {self.program} nothing before\n".encode(),
            "script_without_interpreter": b"echo this is no program\n",
            "missing_interpreter": b"#!/nowhere/sh\n",
            "missing_linker": elf.replace(b"/lib64/ld-linux-x86-64.so.2", b"/lib64/ld-nowhere-x6-64.so.2"[:27]),
            "empty": b"",
            "truncated": elf[:200],
            "for_32_bits": elf[:4] + b"\x01" + elf[5:],
            "for_another_machine": elf[:18] + b"\xb7\x00" + elf[20:],
            "not_executable": elf,
        }
        if bad.thing == "static":
            source = b"int main(void) { return 0; }"
            subprocess.run(["gcc", "-static", "-x", "c", "-", "-o", path], input=source, check=True)
        elif bad.thing == "folder":
            path.mkdir()
        elif bad.thing == "dangling_link":
            path.symlink_to("nowhere")
        elif bad.thing == "pipe":
            os.mkfifo(path)
        elif bad.thing != "missing":
            path.write_bytes(contents[bad.thing])
            path.chmod(0o644 if bad.thing == "not_executable" else 0o755)
        return path


def _executes(entry: Path, program: Path) -> bool:
    try:
        return str((entry / "exe").readlink()).startswith(str(program))
    except OSError:
        return False


def _judged(
    bad: Bad, bare: tuple[int, bytes] | None, stage: str, done: Done, results: Path
) -> Iterator[tuple[str, str]]:
    sentences = [line for line in done.errors.splitlines() if line.startswith("ffm: ")]
    told = done.errors[-600:]
    if done.hung:
        yield "hangs", told
    elif "Traceback" in done.errors:
        yield "tracebacks", told
    elif done.code not in (0, 1):
        yield "crashes", f"exit status {done.code}: {told}"
    elif done.code == 1 and len(sentences) != 1:
        yield "misled", f"{len(sentences)} sentences: {told}"
    elif refused := bad.refused or (bad.unwatched if stage == "memory" else ""):
        if done.code == 0 or refused not in done.errors:
            yield "misled", f"exit status {done.code}: {told}"
    elif bare is not None and stage != "analysis":
        code, output = bare
        how = "" if code == 0 else f"exited with code {code}" if code > 0 else _signal_name(-code)
        if (done.code == 0) != (code == 0) or how not in done.errors:
            yield "changed", f"bare {code}: {told}"
        elif (found := (results / f"{stage}.log").read_bytes()) != output:
            yield "changed", f"it wrote {found[-200:]!r}, bare {output[-200:]!r}"
        elif stage == "tracing" and (waits := _waits(results)) != bad.waits:
            yield "silent losses", f"{waits} of {bad.waits} waits"


def _signal_name(number: int) -> str:
    try:
        return signal.Signals(number).name
    except ValueError:
        return f"SIGRTMIN+{number - signal.SIGRTMIN}"


def _waits(results: Path) -> int:
    """Return how many waits of the program stage 2 recorded, in all processes."""
    index = load_catalogue()["cuCtxSynchronize"].index
    try:
        recordings = read_recordings(results / "recordings" / "tracing")
    except InstrumentError:
        return -1
    tables = (recording.operations for recording in recordings)
    return sum(int(((table["function"] == index) & (table["result"] == 0)).sum()) for table in tables)


def main() -> None:
    """Try all bad programs, or those of whose names the arguments are parts; print what did not hold, and counts."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("names", nargs="*", metavar="NAME")
    parser.add_argument("--stages", type=int, default=len(STAGES), help="Run only the first N stages.")
    given = parser.parse_args()
    pytest_configure()
    counts: Counter[str] = Counter()
    bad_things: Counter[str] = Counter()
    with tempfile.TemporaryDirectory(prefix="ffm-bad-") as folder, Server(Path(folder)) as server:
        ground = Ground(Path(folder), server)
        for kind, programs in KINDS.items():
            for program in programs:
                if given.names and not any(name in str(program) for name in given.names):
                    continue
                counts[kind] += 1
                for what, story in ground.tried(program, given.stages):
                    bad_things[what] += 1
                    print(f"{what}: {kind}: {program}: {story}", flush=True)
    print(f"{counts.total()} bad programs: {', '.join(f'{count} {kind}' for kind, count in counts.items())}")
    print(", ".join(f"{bad_things[name]} {name}" for name in BAD))
    sys.exit(bool(bad_things))


if __name__ == "__main__":
    main()
