"""Compiles the samples and the planted programs for this machine's GPU, in parallel with steps that measure no times.

`python benchmarks/gpu/programs.py FOLDER ARCHITECTURE DRIVER SORT...` compiles those of each SORT, `samples` or
`planted`, and prints one line of JSON per program, [name, nvcc's complaint or an empty text].
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor, as_completed
from functools import partial
from pathlib import Path

from steps import ROOT, FailedStep, Machine, Row, SkippedStep, end_group, last_line

SAMPLES = ROOT / "ffm" / "vgpu" / "samples"
PLANTED = ROOT / "tests" / "planted" / "programs"
INCLUDES = ROOT / "ffm" / "vgpu" / "include"
NAMES = (
    *("als", "als_fixed", "fft", "fft_fixed", "ibm", "ibm_fixed", "train", "train_fixed"),
    *("overlap", "overlap_fixed_wait", "overlap_fixed_order", "flag", "flag_fixed"),
    *("gaussian", "gaussian_fixed", "amg", "amg_fixed"),
)
"""The samples, in the order in which they are measured."""

WARMING = 75.0
"""Seconds to wait for Numba, which started with the first steps."""

CUBLAS = "samples_cublas"
"""Folder of the sample als when it calls cuBLAS, whose driver calls are private."""


class Build:
    """The compilation, which runs in the background as soon as the GPU's architecture is known."""

    def __init__(self, chosen: set[str]) -> None:
        """Compile what the chosen steps need; everything if none is named."""
        self._sorts = [sort for sort in ("samples", "planted") if not chosen or sort in chosen]
        self._process: subprocess.Popen[str] | None = None
        self._answers = Path()
        self._warming: subprocess.Popen[str] | None = None

    def start(self, machine: Machine) -> None:
        """Start if that is possible and has not happened yet."""
        if self._process is not None or machine.virtual or not machine.architecture or shutil.which("nvcc") is None:
            return
        machine.programs.mkdir(parents=True, exist_ok=True)
        self._answers = machine.programs / "answers.jsonl"
        script = [sys.executable, __file__, str(machine.programs), machine.architecture, machine.driver]
        with self._answers.open("w") as answers, (machine.programs / "errors.txt").open("w") as errors:
            self._process = machine.start(["nice", *script, *self._sorts], answers, errors)

    def warm(self, machine: Machine) -> None:
        """Have Numba compile the model's kernels too, if programs will be measured."""
        if not self._sorts:
            return
        script = [sys.executable, str(Path(__file__).with_name("warm.py")), str(machine.work / "warm")]
        with (machine.work / "warm.txt").open("w") as errors:
            self._warming = machine.start(["nice", *script], subprocess.DEVNULL, errors)

    def results(self, machine: Machine) -> Iterator[Row]:
        """Wait for the compilers, and report what they refused."""
        if self._warming is not None:
            yield self._warmed(self._warming, machine)
        if machine.virtual:
            raise SkippedStep("the samples of the virtual GPU are built; planted programs are compiled when they run")
        if self._process is None:
            reason = "there is no nvcc" if shutil.which("nvcc") is None else "the GPU's architecture is unknown"
            raise FailedStep(reason)
        in_time = True
        try:
            self._process.wait(machine.left(1000.0))
        except subprocess.TimeoutExpired:
            in_time = False
            end_group(self._process)
        answers = dict(map(json.loads, self._answers.read_text().splitlines()))
        for name, refusal in answers.items():
            if refusal:
                yield Row(name, False, refusal)
        compiled = sum(not refusal for refusal in answers.values())
        yield Row("compiled", compiled > 0, f"{compiled} of {len(answers)} programs for {machine.architecture}")
        if not in_time:
            raise FailedStep("not all programs were compiled in time")
        if self._process.returncode:
            raise FailedStep(
                f"programs.py ended with {self._process.returncode}; see {machine.programs / 'errors.txt'}"
            )

    @staticmethod
    def _warmed(process: subprocess.Popen[str], machine: Machine) -> Row:
        subject = "kernels of the model"
        try:
            process.wait(machine.left(WARMING))
        except subprocess.TimeoutExpired:
            return Row(subject, None, "not compiled yet; this continues during the next steps")
        if process.returncode == 0:
            return Row(subject, None, "compiled")
        said = last_line((machine.work / "warm.txt").read_text())
        return Row(subject, None, f"not compiled beforehand: warm.py ended with {process.returncode}: {said}")


def cublas_folder() -> Path | None:
    """Return a folder that contains cuBLAS and its header: a toolkit's, or that of the package nvidia-cublas."""
    toolkits = [Path(os.environ.get("CUDA_HOME", "/usr/local/cuda"))]
    packages = [Path(folder) / "nvidia" / "cu13" for folder in sys.path]
    for folder in (*packages, *toolkits):
        libraries = [*folder.glob("lib/libcublas.so.*"), *folder.glob("lib64/libcublas.so.*")]
        if libraries and (folder / "include" / "cublas_v2.h").exists():
            return folder
    return None


def planted_program(folder: Path, source: Path) -> Path:
    """Return where the planted program of a source is built."""
    return folder / "planted" / source.stem


def _sample(name: str, folder: Path, architecture: str, cublas: Path | None = None) -> str:
    script = ["sh", str(SAMPLES / "build_nvcc.sh"), str(folder / ("samples" if cublas is None else CUBLAS)), name]
    more = {} if cublas is None else {"CUBLAS": str(cublas)}
    return _refusal(script, {**os.environ, "CUDA_ARCH": architecture, "PYTHON": sys.executable, **more})


def _planted(source: Path, folder: Path, architecture: str, driver: str) -> str:
    from tests.planted.building import standard_of

    program = planted_program(folder, source)
    # Under another name until it is complete.
    unfinished = program.with_suffix(".unfinished")
    command = [
        "nvcc", standard_of(source), "-O1", "-g", f"-arch={architecture}", f"-I{PLANTED}", f"-I{INCLUDES}",
        "-include", "planted.h", "-x", "cu", str(source), str(PLANTED / "planted.cpp"), "-o", str(unfinished),
        "-Xlinker", driver,
    ]  # fmt: skip
    refusal = _refusal(command, dict(os.environ))
    if not refusal:
        unfinished.rename(program)
    return refusal


def _refusal(command: list[str], environment: dict[str, str]) -> str:
    done = subprocess.run(command, capture_output=True, text=True, check=False, env=environment)
    if done.returncode == 0:
        return ""
    said = [text for text in (done.stderr + done.stdout).splitlines() if text.strip()]
    wrong = [text for text in said if "error" in text.lower()]
    return (wrong or said or [f"exit status {done.returncode}"])[0].strip()


def main(folder: Path, architecture: str, driver: str, sorts: list[str]) -> int:
    """Compile as many programs at a time as there are processors; return the exit status."""
    from ffm.driver.search import find_driver

    library = driver or str(find_driver() or "-lcuda")
    (folder / "planted").mkdir(parents=True, exist_ok=True)
    jobs: list[tuple[str, Callable[[], str]]] = []
    if "samples" in sorts:
        jobs += [(name, partial(_sample, name, folder, architecture)) for name in NAMES]
    cublas = cublas_folder()
    if "samples" in sorts and cublas is not None:
        for name in ("als", "als_fixed"):
            jobs.append((f"{name} with cuBLAS", partial(_sample, name, folder, architecture, cublas)))
    if "planted" in sorts:
        for source in sorted(PLANTED.glob("*.cu")):
            jobs.append((source.stem, partial(_planted, source, folder, architecture, library)))
    with ThreadPoolExecutor(os.cpu_count()) as pool:
        running = {pool.submit(job): name for name, job in jobs}
        for done in as_completed(running):
            print(json.dumps([running[done], done.result()]), flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1]), sys.argv[2], sys.argv[3], sys.argv[4:]))
