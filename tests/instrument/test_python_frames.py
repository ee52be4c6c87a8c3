"""Python functions in recorded stacks, compared with what the program itself reports. `fetch_pythons.sh` fetches
interpreters that the system lacks.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path, PurePath

import platformdirs
import pytest

from ffm.evidence.stack_table import StackTable
from ffm.instrument.probing.remembered import wait_function
from ffm.instrument.recording.layout import constant
from ffm.instrument.recording.reader import Recording, read_recordings
from ffm.instrument.recording.stacks import RecordedStack
from ffm.instrument.session.instruments import Instruments
from ffm.instrument.session.runner import run_instrumented
from ffm.results.documents.analysis import Analysis
from ffm.results.documents.notes import UnjoinedPython, UnreadPython
from ffm.results.stored import open_results
from ffm.symbols.named_stacks import name_stacks
from ffm.symbols.python_frames import EVALUATION
from ffm.symbols.symbolizer import Symbolizer
from ffm.vgpu.paths import library_folder
from tests.conftest import Ffm
from tests.stage_commands import run_stages

PROGRAM = Path(__file__).parent / "programs" / "python_places.py"
TRAINING = PROGRAM.with_name("python_training.py")
VERSIONS = ("3.11", "3.12", "3.13", "3.14", "3.15")
FUNCTION = "cuCtxSynchronize"


FETCHED = Path(os.environ.get("FFM_PYTHONS") or Path(platformdirs.user_cache_dir("ffm")) / "pythons") / "usr" / "bin"


def interpreters() -> dict[str, str]:
    """Pythons of each version whose stacks can be read: one under pyenv, the one on the search path, which may be built
    differently (Debian's is stripped, and not a shared library), and the one that was fetched. The value is empty if
    there is none.
    """
    pyenv = Path(os.environ.get("PYENV_ROOT", Path.home() / ".pyenv")) / "versions"
    found: dict[str, str] = {}
    for version in VERSIONS:
        name = f"python{version}"
        ways: dict[str, list[str | None]] = {
            "pyenv": [*(str(path) for path in sorted(pyenv.glob(f"{version}.*/bin/{name}")))],
            "path": [shutil.which(name, path=f"/usr/bin{os.pathsep}{os.defpath}"), shutil.which(name)],
            "fetched": [shutil.which(name, path=FETCHED)],
        }
        for way, candidates in ways.items():
            path = next((path for path in candidates if path and _runs(path, version)), None)
            if path:
                found[f"{version}-{way}"] = path
        if not any(key.startswith(version) for key in found):
            found[version] = ""
    return found


def _runs(path: str, version: str) -> bool:
    """Return whether it is that version and can call C functions; a launcher of pyenv may stand for none."""
    question = "import ctypes, sys; print('%d.%d' % sys.version_info[:2])"
    done = subprocess.run([path, "-c", question], capture_output=True, text=True, check=False)
    return done.stdout.strip() == version


Function = tuple[str, str, int]


@dataclass(frozen=True)
class Measured:
    """A run: its recording, and where the program reports that it was, for each thread."""

    recording: Recording
    waits: dict[int, list[list[Function]]]

    def stacks(self, thread: int) -> list[RecordedStack]:
        """Return the stacks of a thread's waits, in order; not of that for the context, whose creation is no hook's."""
        operations = self.recording.operations
        mine = (operations["thread_id"] == thread) & (operations["function"] != constant("FFM_FUNCTION_PRIVATE"))
        return [self.recording.stacks[number] for number in operations["stack"][mine]]


def measure(interpreter: str, folder: Path, program: Path = PROGRAM) -> Measured:
    folder.mkdir()
    answer = folder / "waits.json"
    outcome = run_instrumented(
        [interpreter, str(program), str(library_folder() / "libcuda.so.1"), str(answer)],
        Instruments(folder, [FUNCTION], 0, None, wait_function),
        output=folder / "output",
        timeout_s=60,
    )
    assert outcome.ending.sound, (folder / "output").read_text()
    waits = {
        int(thread): [[(name, file, line) for name, file, line in functions] for functions in stacks]
        for thread, stacks in json.loads(answer.read_text()).items()
    }
    (recording,) = read_recordings(folder)
    return Measured(recording, waits)


INTERPRETERS = interpreters()


@pytest.fixture(scope="module", params=INTERPRETERS)
def interpreter(request: pytest.FixtureRequest) -> str:
    if not INTERPRETERS[request.param]:
        pytest.skip(f"no Python {request.param} is installed")
    return INTERPRETERS[request.param]


@pytest.fixture(scope="module")
def measured(interpreter: str, tmp_path_factory: pytest.TempPathFactory) -> Measured:
    return measure(interpreter, tmp_path_factory.mktemp("python") / "run")


def functions_of(stack: RecordedStack) -> list[Function]:
    return [(frame.function, frame.file, frame.line) for frame in stack.python if frame.function]


def test_the_recording_names_the_interpreter(measured: Measured, interpreter: str) -> None:
    said = subprocess.run([interpreter, "-V"], capture_output=True, text=True, check=True).stdout
    assert said.split() == ["Python", measured.recording.python_version]
    assert measured.recording.python_readable


def test_stacks_hold_the_functions_that_the_program_was_in(measured: Measured) -> None:
    room = 128  # functions of a stack
    for thread, waits in measured.waits.items():
        stacks = measured.stacks(thread)
        assert len(stacks) == len(waits) > 500
        for stack, functions in zip(stacks, waits, strict=True):
            recorded = functions_of(stack)
            assert recorded == functions[: len(recorded)]
            assert len(recorded) == len(functions) or (stack.truncated and len(recorded) > room / 2)


def test_each_place_is_one_stack_however_often_it_ran(measured: Measured) -> None:
    """The interpreter takes other paths through its own code once it has specialized an instruction."""
    for thread, waits in measured.waits.items():
        keys: dict[str, set[str]] = {}
        for stack, functions in zip(measured.stacks(thread), waits, strict=True):
            keys.setdefault(json.dumps(functions), set()).add(stack.key)
        several = {place: len(found) for place, found in keys.items() if len(found) > 1}
        assert list(several.values()) == [2], several
        assert "two_on_one_line" in next(iter(several))


def test_another_run_has_the_same_keys(measured: Measured, interpreter: str, tmp_path: Path) -> None:
    again = measure(interpreter, tmp_path / "again")
    assert [stack.key for stack in again.recording.stacks] == [stack.key for stack in measured.recording.stacks]


def unnamed_evaluation(interpreter: str) -> bool:
    """Return whether the interpreter evaluates in functions without names: CPython 3.15 as built by Debian has one for
    each instruction, which the evaluation function jumps to, and is stripped.
    """
    return interpreter == str(FETCHED / "python3.15")


def test_python_and_native_frames_are_joined(measured: Measured, interpreter: str) -> None:
    table = StackTable()
    table.add(measured.recording)
    named = name_stacks(table.stacks, table.modules, Symbolizer())
    if unnamed_evaluation(interpreter):
        (note,) = (note for note in named.notes if isinstance(note, UnjoinedPython))
        assert note.stacks == len(measured.recording.stacks) - 1
        return
    assert not any(isinstance(note, UnjoinedPython) for note in named.notes)
    for recorded, stack in zip(measured.recording.stacks[1:], named.stacks[1:], strict=True):
        python = [(frame.function, frame.file, frame.line) for frame in stack.frames if frame.python]
        assert python == functions_of(recorded)
        assert "python" not in {Path(named.modules[frame.module].path).name[:6] for frame in stack.frames}
        assert not any(frame.function.startswith((EVALUATION, "_TAIL_CALL_")) for frame in stack.frames)


def test_calls_from_a_cut_stack_say_so(measured: Measured) -> None:
    operations = measured.recording.operations
    cut = operations["flags"] & constant("FFM_OPERATION_TRUNCATED") != 0
    assert 0 < cut.sum() == sum(measured.recording.stacks[number].truncated for number in operations["stack"])


@pytest.fixture(scope="module")
def analysis(ffm: Ffm, tmp_path_factory: pytest.TempPathFactory) -> Analysis:
    """All stages on a program that uses NVIDIA's own binding."""
    pytest.importorskip("cuda.bindings.driver")
    results = tmp_path_factory.mktemp("binding") / "results"
    command = ["env", f"LD_LIBRARY_PATH={library_folder()}", sys.executable, str(TRAINING)]
    run_stages(ffm, command, results, {"timeout": "60"})
    return open_results(results).document


def marked(mark: str) -> set[tuple[str, int]]:
    """Return call and line wherever a comment of the program contains the mark."""
    lines = enumerate(TRAINING.read_text().splitlines(), 1)
    return {(line.split("# ")[1].split(": ")[0], number) for number, line in lines if line.endswith(f": {mark}")}


def sites_of(analysis: Analysis, *, problems: bool) -> set[tuple[str, int]]:
    return {
        (site.call, site.line)
        for site in analysis.sites
        if site.call and site.file == str(TRAINING) and (not problems or site.problem_count)
    }


def test_the_report_names_the_lines_of_the_program(analysis: Analysis) -> None:
    assert sites_of(analysis, problems=False) == marked("needed") | marked("unnecessary") | marked("once")
    assert {site.file for site in analysis.sites if site.call} == {str(TRAINING)}


def test_problems_of_a_python_program_are_found_and_only_those(analysis: Analysis) -> None:
    assert sites_of(analysis, problems=True) - marked("once") == marked("unnecessary")


def test_runs_of_a_python_program_match(analysis: Analysis) -> None:
    assert analysis.matching is not None
    assert analysis.matching.unmatched == []
    assert not any(isinstance(note, UnjoinedPython | UnreadPython) for note in analysis.notes)


def test_a_whole_stack_reads_from_the_binding_to_the_module(analysis: Analysis) -> None:
    (site,) = (site for site in analysis.sites if site.caller == "Model.loss_of")
    frames = analysis.stacks[site.stack].frames
    python = [frame.function for frame in frames if frame.python]
    assert python == ["Model.loss_of", "Model.losses", "train", "<module>"]
    assert PurePath(analysis.modules[frames[0].module].path).name.startswith("cydriver.")
    assert not any(frame.function.startswith(("_Py", "Py", "py")) for frame in frames)
