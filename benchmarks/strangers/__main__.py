"""Does everything work on programs that nobody here wrote? HeCBench on the virtual GPU, bare, measured and corrected.

    python benchmarks/strangers HECBENCH/src                          # 60 programs, spread over the alphabet, all steps
    python benchmarks/strangers HECBENCH/src --only bare --count 0    # build and run all programs
    python benchmarks/strangers HECBENCH/src --programs adam heat     # these two
    python benchmarks/strangers RODINIA --suite benchmarks/strangers/suites/rodinia.toml --work build/rodinia

Programs are built by their own Makefiles and run with the arguments that these name, made smaller where the CPU is too
slow for them. Those of other suites are built and run as a file in `suites/` says. Each step of each program is done
once: what a work folder holds already is kept, so that an interrupted call can be repeated. Prints a table; the
JSON next to it has all figures.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Callable
from pathlib import Path

sys.path.append(str(Path(__file__).parents[1]))
import program_steps as steps
import sources
import suites
import table
import toolchain
from goals import goals
from program_steps import Found, Place
from scaling import LAST_LEVEL

DO: dict[str, Callable[[Found, Place], Found]] = {
    "build": lambda record, place: steps.built(record["name"], place),
    "bare": steps.bare,
    "stages": steps.stages,
    "corrected": steps.corrected,
}


def selected(found: list[str], arguments: argparse.Namespace) -> list[str]:
    """Return the programs to do: those named, or some that are spread evenly over the list."""
    if arguments.programs:
        return [name for name in found if name in arguments.programs]
    first, last = arguments.letters
    found = [name for name in found if first <= name[0].lower() <= last]
    half = {"all": found, "even": found[::2], "odd": found[1::2]}[arguments.half]
    if not 0 < arguments.count < len(half):
        return half
    return [half[place * len(half) // arguments.count] for place in range(arguments.count)]


def complete(record: Found, wanted: list[str], place: Place, again: set[str]) -> None:
    """Do the steps that the record lacks, in order, as far as each one's predecessor went well."""
    for step in wanted:
        if step in again or step not in record:
            for later in wanted[wanted.index(step) :]:
                record.pop(later, None)
            print(f"{record['name']}: {step}", file=sys.stderr, flush=True)
            record[step] = DO[step](record, place)
            write(place.work / "records" / f"{record['name']}.json", record)
        if not record[step]["ok"]:
            break


def write(path: Path, content: object) -> None:
    """Write JSON; an interruption leaves the old file."""
    path.parent.mkdir(parents=True, exist_ok=True)
    draft = path.with_suffix(".draft")
    draft.write_text(json.dumps(content, indent=1) + "\n")
    draft.replace(path)


def read(path: Path, name: str) -> Found:
    """Return what is known of a program."""
    return dict(json.loads(path.read_text())) if path.exists() else {"name": name}


def main() -> int:
    """Do the programs, print and write; return 1 if nothing was found."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("checkout", type=Path, help="the folder `src` of a HeCBench checkout")
    parser.add_argument(
        "--work", type=Path, default=Path("build/strangers"), help="folder for everything [%(default)s]"
    )
    parser.add_argument(
        "--suite", type=Path, metavar="FILE", help="what the checkout holds, if it is not HeCBench: a file of suites/"
    )
    parser.add_argument("--programs", nargs="+", metavar="NAME", help="only these, without -cuda")
    parser.add_argument(
        "--letters", nargs=2, default=("a", "z"), metavar=("FIRST", "LAST"), help="first letters of names [a z]"
    )
    parser.add_argument("--half", choices=["all", "even", "odd"], default="all", help="which places of the list [all]")
    parser.add_argument("--count", type=int, default=60, help="how many programs of those; 0: all [%(default)s]")
    parser.add_argument(
        "--limit", type=float, default=30.0, metavar="S", help="of processor time, for one bare run [%(default)s]"
    )
    parser.add_argument(
        "--level",
        type=int,
        choices=range(LAST_LEVEL + 1),
        default=2,
        help="size of the arguments that is tried first; 0 leaves them as they are [%(default)s]",
    )
    parser.add_argument(
        "--kernels-last",
        type=float,
        metavar="US",
        help="kernels compute nothing, and last this long: waits and transfers then count for more, as on a fast GPU",
    )
    parser.add_argument("--real", action="store_true", help="run on this machine's own GPU, not on the virtual one")
    parser.add_argument(
        "--watch", choices=["pages", "trace"], default="pages", help="how stage 3 watches memory [%(default)s]"
    )
    parser.add_argument("--runs", type=int, default=7, help="of each version, for the measured saving [%(default)s]")
    parser.add_argument("--only", choices=steps.STEPS, help="go no further than this step")
    parser.add_argument("--again", nargs="+", choices=steps.STEPS, default=[], help="repeat these steps")
    parser.add_argument("--show", action="store_true", help="do nothing, show what the work folder holds")
    arguments = parser.parse_args()
    if arguments.real and arguments.kernels_last is not None:
        parser.error("--kernels-last is for the virtual GPU")
    work = arguments.work.resolve()
    suite = suites.read(arguments.suite) if arguments.suite else None
    chosen = selected(sorted(suite.programs) if suite else sources.names(arguments.checkout), arguments)
    if not chosen:
        parser.error(f"no programs in {arguments.checkout}")
    prepared = toolchain.prepare(work / "bin")
    checkout = arguments.checkout.resolve()
    place = Place(
        checkout,
        work,
        prepared,
        arguments.limit,
        arguments.runs,
        suite,
        arguments.kernels_last,
        arguments.watch,
        arguments.level,
        arguments.real,
    )
    wanted = list(steps.STEPS)
    if arguments.only:
        wanted = wanted[: wanted.index(arguments.only) + 1]
    records = []
    for name in chosen:
        record = read(work / "records" / f"{name}.json", name)
        if not arguments.show:
            complete(record, wanted, place, set(arguments.again))
        records.append(record)
    done = [record for record in records if "build" in record]
    table.show(done)
    write(work / "strangers.json", {"summary": table.summary(done), "goals": dict(goals(done)), "programs": done})
    return 0


if __name__ == "__main__":
    sys.exit(main())
