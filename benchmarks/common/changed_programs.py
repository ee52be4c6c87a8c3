"""Programs, and what is really changed in them, for `what_if.py`.

A kernel becomes twice as fast by the virtual GPU's configuration: measured is one on which it takes twice as long as it
should, because it cannot take less than this machine's CPU needs for it. Work of the CPU becomes twice as fast if the
measured program does it twice and the changed one once. A copy is gone if its line in the source is.
"""

from __future__ import annotations

import dataclasses
import re
import shutil
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from random import Random

from random_programs import KERNELS, generate

import ffm.vgpu
from common.building import PROGRAMS, build_file, cuda_headers
from common.twins import SAMPLES
from ffm.errors import FfmError
from ffm.vgpu.paths import library_folder
from ffm.vgpu.paths import sample as path_of

Edits = Mapping[str, tuple[tuple[str, str], ...]]
"""By file, texts and what takes their place."""

LIBRARIES = {"als": ("-lvblas",), "fft": ("-lvfft",)}
_KERNEL = re.compile(r"^kernel[.](\S+) =", re.MULTILINE)
_NUMBER = re.compile(r"[0-9]+([.][0-9]+)?")


@dataclass(frozen=True, slots=True)
class Change:
    """A change of a program, and how `ffm path --if` is asked about it."""

    program: str
    """A sample, one of `programs/`, or the name of a random program."""
    name: str
    asked: str
    """`{place}` stands for the place of `marked` in the source."""
    kernels: tuple[str, ...] = ()
    """Become twice as fast."""
    before: Edits = field(default_factory=dict)
    """Make the measured program of the source."""
    after: Edits = field(default_factory=dict)
    """Make the changed program of the source."""
    marked: tuple[str, str] = ("", "")
    """A file, and a text in it."""
    arguments: tuple[str, ...] = ()
    source: str = ""
    """A random program; empty if it lies in a file."""
    gpu: str = ""
    """The virtual GPU's configuration of a program that is no sample."""

    @property
    def question(self) -> str:
        """Return `asked` with the place, in the source with which the program is built."""
        file, text = self.marked
        if not file:
            return self.asked
        source = edited((SAMPLES / self.program / file).read_text(), self.before.get(file, ()))
        return self.asked.format(place=f"{file}:{source[: source.index(text)].count(chr(10)) + 1}")


@dataclass(frozen=True, slots=True)
class Built:
    """A program as built."""

    command: list[str]
    gpu: str
    """The virtual GPU's configuration."""


def faster(program: str, kernel: str, *arguments: str, file: str = "main.cu") -> Change:
    """Return the change of a kernel of a sample, launched in one place, that becomes twice as fast."""
    shown = f"{kernel.partition('<')[0]}<...>" if "<" in kernel else kernel
    question, marked = f"kernel {shown} {{place}}=2x", (file, f"LAUNCH({kernel},")
    return Change(program, f"{kernel} 2x", question, (kernel,), marked=marked, arguments=arguments)


def all_faster(program: str) -> Change:
    """Return the change of a sample whose kernels all become twice as fast."""
    gpu = (SAMPLES / f"{program}.vgpu").read_text()
    return Change(program, "all kernels 2x", "kernel =2x", tuple(_KERNEL.findall(gpu)))


def without(program: str, copy: str, *arguments: str, file: str = "main.cu", unused: str = "") -> Change:
    """Return the change of a sample that leaves out a copy, which is a call in one line of its own.

    What the CPU does can depend on what the copy brings. Then `unused` takes its place in the measured program: the
    same copy to where nobody reads it, so that the CPU does the same in both.
    """
    name, after = f"without {copy[6:36]}...", {file: ((copy, ";"),)}
    before: Edits = {file: ((copy, unused),)} if unused else {}
    marked = (file, unused or copy)
    return Change(program, name, "{place}=gone", before=before, after=after, marked=marked, arguments=arguments)


def once(program: str, region: str, *work: str, file: str = "main.cu") -> Change:
    """Return the change of a sample that does `work`, all of a region of the CPU, once instead of twice."""
    return Change(
        program, f"{work[0][:33]} 2x", f"{region}=2x", before={file: tuple((one, f"{one}; {one}") for one in work)}
    )


def twice(program: Change, function: str, work: str) -> Change:
    """Return the change of one of `programs/` that does `work`, all that a function does, once instead of twice."""
    before = {f"{program.program}.c": ((work, f"{work} {work}"),)}
    return dataclasses.replace(program, name=f"{function} 2x", asked=f"CPU {function}=2x", kernels=(), before=before)


TURNS = ("4000", "10")
TURNS_GPU = "kernel.step = 200\ncopy.host_to_device.staged = 0.004\ndevice.code = pass\n"

BANDS = Change(
    "bands",
    "filter 2x",
    "kernel=2x",
    ("filter",),
    arguments=("2000",),
    gpu="kernel.filter = 1100\ndevice.code = pass\n",
)
DESCENT = Change(
    "descent",
    "gradient 2x",
    "kernel gradient=2x",
    ("gradient",),
    arguments=("4000",),
    gpu="kernel.gradient = 120\nkernel.advance = 60\ndevice.code = pass\n",
)

CHANGES = [
    faster("flag", "list_neighbours"),
    once("flag", "particles.", "reference.predict(particles)"),
    without(
        "flag",
        "check(cudaMemcpy(particles.data(), state.moved, particle_bytes, cudaMemcpyDeviceToHost));",
        unused="static std::vector<Particle> unused(particle_count); "
        "check(cudaMemcpy(unused.data(), state.moved, particle_bytes, cudaMemcpyDeviceToHost));",
    ),
    faster("gaussian", "subtract_row"),
    once("gaussian", "CPU ReferenceElimination", "reference.eliminate_column(column)"),
    faster("amg", "restrict_residual<0>"),
    all_faster("amg"),
    without("amg", "check(cudaMemcpy(x.data(), fine.x, x.size() * sizeof(float), cudaMemcpyDeviceToHost));"),
    faster("als", "gram_matrices<Half::theta>", "40", file="als.cu"),
    without(
        "als",
        "check(cudaMemcpy(test_values, test.values.data(), test_bytes, cudaMemcpyHostToDevice));",
        "40",
        file="als.cu",
    ),
    all_faster("fft"),
    all_faster("overlap"),
    without(
        "overlap",
        "check(cudaMemcpyAsync(result, sums, side * sizeof(std::int32_t), cudaMemcpyDeviceToHost, stream));",
    ),
    all_faster("ibm"),
    all_faster("train"),
    once("train", "CPU train", "batches.draw(samples, labels)", "reference.step(samples, labels)", file="train.py"),
    Change("turns", "step 2x", "kernel=2x", ("step",), arguments=TURNS, gpu=TURNS_GPU),
    Change(
        "turns",
        "without cuMemcpyHtoD",
        "cuMemcpyHtoD=gone",
        after={"turns.c": (("check(cuMemcpyHtoD(device, source, sizeof source));", ";"),)},
        arguments=TURNS,
        gpu=TURNS_GPU,
    ),
    BANDS,
    twice(BANDS, "prepare", "prepare(input[turn], (unsigned)round);"),
    DESCENT,
    twice(DESCENT, "adapt", "factor = adapt(factor);"),
    dataclasses.replace(
        DESCENT,
        name="without cuMemcpyHtoD",
        asked="cuMemcpyHtoD=gone",
        kernels=(),
        after={"descent.c": (("check(cuMemcpyHtoD(device, &factor, sizeof factor));", ";"),)},
    ),
]
"""Of samples, and of a program in `programs/`."""


def random_changes(seed: int) -> list[Change]:
    """Return changes of a random program: all of its kernels twice as fast, and all copies of one kind gone."""
    program = generate(Random(seed))
    name, kernels = f"random-{seed}", tuple(KERNELS)
    base = Change(name, "all kernels 2x", "kernel=2x", kernels, source=program.source, gpu=program.configuration)
    copies = sorted({line for line in program.source.splitlines() if "cuMemcpy" in line})
    if not copies:
        return [base]
    call = Random(seed).choice(copies)[6:].partition("(")[0]
    edits = tuple((one, ";") for one in copies if one[6:].startswith(f"{call}("))
    gone = dataclasses.replace(
        base, name=f"without {call}", asked=f"{call}_v2 =gone", kernels=(), after={f"{name}.c": edits}
    )
    return [base, gone]


def doubled(gpu: str, kernels: tuple[str, ...]) -> str:
    """Return the configuration of a virtual GPU on which some kernels take twice as long; they must be there."""
    missing = {one.removeprefix("kernel.") for one in kernels}
    lines = []
    for line in gpu.splitlines():
        key, equals, value = line.partition("=")
        if equals and key.strip().removeprefix("kernel.") in missing:
            missing.remove(key.strip().removeprefix("kernel."))
            value = _NUMBER.sub(lambda number: f"{2 * float(number[0]):.6f}", value)
        lines.append(f"{key}{equals}{value}\n")
    if missing:
        raise FfmError(f"the virtual GPU has no kernel {', '.join(sorted(missing))}")
    return "".join(lines)


def edited(source: str, edits: tuple[tuple[str, str], ...]) -> str:
    """Return a source with changed texts, wherever they are."""
    for old, new in edits:
        if old not in source:
            raise FfmError(f"{old!r} is not in the source")
        source = source.replace(old, new)
    return source


def build_changed(change: Change, edits: Edits, folder: Path) -> Built:
    """Build a program from its source with edits, in a new folder."""
    folder.mkdir(parents=True)
    if change.gpu:
        file = f"{change.program}.c"
        source = change.source or (PROGRAMS / file).read_text()
        (folder / file).write_text(edited(source, edits.get(file, ())))
        program = build_file(folder / file, folder)
        return Built([str(program), *(change.arguments or ("0",))], change.gpu)
    sources = folder / "source"
    shutil.copytree(SAMPLES / change.program, sources)
    for file, texts in edits.items():
        (sources / file).write_text(edited((sources / file).read_text(), texts))
    build = _start_train if change.program == "train" else _compile
    return Built([*build(change.program, sources), *change.arguments], (SAMPLES / f"{change.program}.vgpu").read_text())


def _compile(sample: str, sources: Path) -> list[str]:
    program, libraries = sources.parent / sample, library_folder()
    subprocess.run(
        [
            "g++", "-O2", "-g", "-x", "c++", *map(str, sorted([*sources.glob("*.cu"), *sources.glob("*.cpp")])),
            "-x", "none", "-o", str(program), f"-I{SAMPLES / 'common'}", f"-I{sources / 'library'}",
            *(f"-I{Path(place) / 'include'}" for place in ffm.vgpu.__path__), "-isystem", str(cuda_headers()),
            f"-L{libraries}", "-l:libcudart.so.13", *LIBRARIES.get(sample, ()), "-pthread", f"-Wl,-rpath,{libraries}",
        ],
        check=True,
    )  # fmt: skip
    return [str(program)]


def _start_train(sample: str, sources: Path) -> list[str]:
    """Let the copy of the sample in Python find the kernels where the sample does."""
    home = path_of(sample).parent
    code = (sources / "train.py").read_text()
    (sources / "train.py").write_text(
        edited(code, (("HERE = Path(__file__).resolve().parent", f"HERE = Path({str(home)!r})"),))
    )
    (sources / "start.py").write_text("import sys\n\nimport train\n\nsys.exit(train.main(fixed=False))\n")
    return [sys.executable, str(sources / "start.py")]
