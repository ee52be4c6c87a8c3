"""How many of CuPy's own tests pass on the virtual GPU, by module, with its wheel as distributed.

    git clone --branch v14.2.0 https://github.com/cupy/cupy ELSEWHERE     # wheels bring no tests
    python tests/clients/count_cupy.py ELSEWHERE                          # the modules below
    python tests/clients/count_cupy.py ELSEWHERE core_tests/test_raw.py   # others
    python tests/clients/count_cupy.py ELSEWHERE logic_tests --results F  # a folder's; go on with those that F lacks

`FFM_CUPY` names the environment with the wheel, its compilers and pytest (default: build/cupy/env). Kernels come as
PTX (CUPY_COMPILE_WITH_PTX=1), on two devices. Prints a line for each module, then the counts.
"""

from __future__ import annotations

import argparse
import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections import Counter
from pathlib import Path

import counting

from ffm.vgpu.paths import library_folder

ENVIRONMENT = Path(os.environ.get("FFM_CUPY", Path(__file__).parents[2] / "build" / "cupy" / "env"))
CONFIGURATION = "devices = 2\ndevice.memory = 4\ncall.compile = 100\ncall.create_context = 10\nkernel.default = 0\n"
MODULES = (
    "core_tests/test_userkernel.py",
    "core_tests/test_reduction.py",
    "core_tests/test_ndarray_reduction.py",
    "core_tests/test_ndarray_scatter.py",
    "core_tests/test_scan.py",
    "core_tests/test_raw.py",
    "creation_tests/test_ranges.py",
    "indexing_tests/test_generate.py",
    "sorting_tests/test_count.py",
    "sorting_tests/test_sort.py",
    "cuda_tests/test_stream.py",
    "cuda_tests/test_memory.py",
)
_COUNT = re.compile(r"(\d+) (passed|failed|skipped|error|errors|xfailed|xpassed)\b")
_BAD = re.compile(r"^(?:FAILED|ERROR) (\S+)(?: - (.*))?$", re.MULTILINE)


def modules(checkout: Path, named: list[str]) -> list[str]:
    """Return the modules with these names, and those in folders with these names."""
    tests = checkout / "tests" / "cupy_tests"
    found = [sorted((tests / name).rglob("test_*.py")) if (tests / name).is_dir() else [tests / name] for name in named]
    return [str(path.relative_to(tests)) for paths in found for path in paths]


def count(checkout: Path, module: str, seconds: float) -> tuple[Counter[str], dict[str, str]]:
    """Run a module's tests; return how many ended in which way, and what those that failed say.

    Tests that are not over in time are not counted.
    """
    with tempfile.TemporaryDirectory() as folder:
        configuration = Path(folder) / "count.vgpu"
        configuration.write_text(CONFIGURATION)
        environment = {
            "LD_LIBRARY_PATH": str(library_folder()),
            "VGPU_CONFIGURATION": str(configuration),
            "CUPY_COMPILE_WITH_PTX": "1",
            "NVCC": shutil.which("nvcc") or "",  # some modules ask for its version when they are read
        }
        command = [str(ENVIRONMENT / "bin" / "python"), "-m", "pytest", "-q", "-p", "no:cacheprovider", "--tb=line"]
        done = subprocess.run(
            ["timeout", "--signal=INT", str(seconds), *command, f"cupy_tests/{module}"],
            cwd=checkout / "tests",
            env={**os.environ, **environment},
            capture_output=True,
            text=True,
            check=False,
        )
    found = Counter({what.rstrip("s"): int(number) for number, what in _COUNT.findall(done.stdout[-300:])})
    if done.returncode not in (0, 1, 5):  # 5: there are no tests
        found["not all in time" if done.returncode in (2, 124) else "ended early"] = 1
    return found, {name: why[: counting.LONGEST_CAUSE] for name, why in _BAD.findall(done.stdout)}


def main() -> int:
    """Count, and return 1 if a test failed."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("checkout", type=Path)
    parser.add_argument("modules", nargs="*", default=MODULES)
    parser.add_argument("--limit", type=float, default=600.0, metavar="S", help="for one module [%(default)s]")
    parser.add_argument("--results", type=Path, metavar="FILE", help="JSON; modules that it has are not counted again")
    arguments = parser.parse_intermixed_args()
    chosen = modules(arguments.checkout, arguments.modules)
    results = counting.Results(arguments.results)
    for module in results.missing(chosen):
        counted, bad = count(arguments.checkout, module, arguments.limit)
        results.add(module, counted, bad)
        told = ", ".join(f"{number} {what}" for what, number in counted.items())
        print(f"{module}: {told}", *list(bad)[:5], sep="\n    ", flush=True)
    total = results.total(chosen)
    print(f"{len(chosen)} modules: " + ", ".join(f"{number} {what}" for what, number in total.items()))
    return int(bool(total["failed"] + total["error"] + total["ended early"]))


if __name__ == "__main__":
    sys.exit(main())
