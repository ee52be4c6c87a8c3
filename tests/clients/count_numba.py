"""How many of Numba's own CUDA tests pass on the virtual GPU; `build_numba.sh` installs them.

    python tests/clients/count_numba.py                      # all modules, one process each; half an hour
    python tests/clients/count_numba.py test_cooperative     # those whose names contain a word
    python tests/clients/count_numba.py --results FILE       # go on counting: those that FILE lacks, which it gets

Prints a line for each module with a test that did not pass, then the counts.
"""

from __future__ import annotations

import argparse
import os
import re
import subprocess
import sys
from collections import Counter
from pathlib import Path

import counting

from ffm.vgpu.paths import library_folder

ENVIRONMENT = Path(os.environ.get("FFM_NUMBA", Path(__file__).parents[2] / "build" / "numba" / "env"))
ROOM = "numba.cuda.tests"
LONGEST_S = 600.0
CONFIGURATION = "device.memory = 4\ncall.compile = 100\ncall.create_context = 10\nkernel.default = 0\n"
"""Small memory: tests of managed memory fill the device's and more."""

_BAD = re.compile(r"^(?:ERROR|FAIL): (\S+)[^\n]*\n(.*?)(?=^={70}|^Ran \d|\Z)", re.MULTILINE | re.DOTALL)
_RAN = re.compile(r"^Ran (\d+) tests?", re.MULTILINE)
_SKIPPED = re.compile(r"skipped=(\d+)")


def modules() -> list[str]:
    """Return the names of all test modules that need a device, without their package's."""
    (folder,) = ENVIRONMENT.glob("lib/python*/site-packages/numba_cuda/numba/cuda/tests")
    paths = (path.relative_to(folder).with_suffix("") for path in folder.rglob("test_*.py"))
    return sorted(".".join(path.parts) for path in paths if path.parts[0] not in ("nocuda", "cudasim", "benchmarks"))


def count(module: str, folder: Path) -> tuple[Counter[str], dict[str, str]]:
    """Run a module's tests; return how many passed, failed and were skipped, and what those that failed say."""
    command = [str(ENVIRONMENT / "bin" / "python"), "-m", "numba.runtests", f"{ROOM}.{module}"]
    configuration = folder / "count.vgpu"
    configuration.write_text(CONFIGURATION)
    environment = {"LD_LIBRARY_PATH": str(library_folder()), "VGPU_CONFIGURATION": str(configuration)}
    try:
        done = subprocess.run(
            command, capture_output=True, text=True, check=False, timeout=LONGEST_S, env={**os.environ, **environment}
        )
        told, status = done.stderr + done.stdout, done.returncode
    except subprocess.TimeoutExpired:
        return Counter(broken=1), {"all": f"still running after {LONGEST_S:.0f} s"}
    (folder / f"{module}.log").write_text(told)
    ran = _RAN.search(told)
    if ran is None:
        return Counter(broken=1), {"all": f"ended with status {status} before its tests were counted"}
    bad = {name: counting.cause(block) for name, block in _BAD.findall(told)}  # a test may fail for several parameters
    skipped = sum(int(number) for number in _SKIPPED.findall(told)[-1:])
    return Counter(passed=int(ran[1]) - len(bad) - skipped, failed=len(bad), skipped=skipped), bad


def main() -> int:
    """Count, and return 1 if a test failed."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("words", nargs="*", help="count modules whose names contain one of these; all by default")
    parser.add_argument("--results", type=Path, metavar="FILE", help="JSON; modules that it has are not counted again")
    parser.add_argument("--logs", type=Path, default=ENVIRONMENT.parent / "logs", help="what the tests print")
    arguments = parser.parse_args()
    arguments.logs.mkdir(parents=True, exist_ok=True)
    chosen = [name for name in modules() if not arguments.words or any(word in name for word in arguments.words)]
    results = counting.Results(arguments.results)
    for module in results.missing(chosen):
        counted, bad = count(module, arguments.logs)
        results.add(module, counted, bad)
        if bad:
            print(f"{module}: {', '.join(bad)}", flush=True)
    total = results.total(chosen)
    print(f"{len(chosen)} modules: " + ", ".join(f"{number} {what}" for what, number in sorted(total.items())))
    return int(bool(total["failed"] + total["broken"]))


if __name__ == "__main__":
    sys.exit(main())
