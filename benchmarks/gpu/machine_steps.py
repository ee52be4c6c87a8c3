"""What the machine is, and whether it has what ffm needs."""

from __future__ import annotations

import importlib
import platform
import shutil
from collections.abc import Iterator

from common.machine import installed_version
from packages import NEEDED, PACKED
from steps import FailedStep, Machine, Row, last_line

FRAMEWORKS = ("cuda-bindings", "cupy-cuda13x", "jax", "numba-cuda", "pycuda", "torch")

QUESTIONS = {
    "GPU": ["nvidia-smi", "--query-gpu=name,driver_version,compute_cap,memory.total", "--format=csv,noheader"],
    "nvcc": ["nvcc", "--version"],
    "gcc": ["gcc", "-dumpfullversion"],
    "llvm-symbolizer": ["llvm-symbolizer", "--version"],
}
"""Programs that report what is there. None is required if another one does its work."""


def check_machine(machine: Machine) -> Iterator[Row]:
    """Report what is there."""
    library = " ".join(platform.libc_ver())
    yield Row("system", None, f"{platform.platform()}, {library}, Python {platform.python_version()}")
    for subject, command in QUESTIONS.items():
        if shutil.which(command[0]) is None:
            yield Row(subject, None, f"no {command[0]}")
            continue
        try:
            done = machine.run(command, 15)
        except FailedStep as reason:
            yield Row(subject, None, str(reason))
            continue
        text = done.stdout.strip() or done.stderr.strip()
        if subject in ("nvcc", "GPU"):
            says = last_line(text)
        else:  # the first line with a version; what comes before is a name
            says = next((one.strip() for one in text.splitlines() if any(map(str.isdigit, one))), last_line(text))
        if subject == "GPU" and done.returncode == 0 and not machine.virtual:
            _, _, capability, _ = (part.strip() for part in says.split(","))
            machine.architecture = f"sm_{capability.replace('.', '')}"
        yield Row(subject, None, says)
    for package in FRAMEWORKS:
        yield Row(package, None, installed_version(package))


def check_packages(_: Machine) -> Iterator[Row]:
    """Check that the packages that ffm imports are installed."""
    for name in (*NEEDED, *PACKED):
        try:
            importlib.import_module(name)
        except Exception as error:  # a package can refuse another one's version with its own error
            yield Row(name, False, f"{type(error).__name__}: {error}")
        else:
            yield Row(name, True, installed_version(PACKED.get(name, name)))
