"""`ffm import`: convert the results of other tools so that the viewing commands can read them."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click

from ffm.cli.options import RESULTS

if TYPE_CHECKING:
    from ffm.results.documents.analysis import Analysis

Function = TypeVar("Function", bound=Callable[..., Any])


@click.group()
def import_results() -> None:
    """Import the measurements of another tool."""


def _results_option(default: str) -> Callable[[Function], Function]:
    return click.option(
        "--results",
        "results_folder",
        type=click.Path(path_type=Path),
        help=f"Where to write. [default: ./results/<{default}>]",
    )


@import_results.command()
@click.argument("folder", type=click.Path(path_type=Path))
@_results_option("folder name without `diogenes-`")
def diogenes(folder: Path, results_folder: Path | None) -> None:
    """Import FOLDER: Diogenes's `combined_stacks.json`, `ttime.txt` and, if it was kept, `sequential_pproc.json`."""
    from ffm.sources.diogenes import import_diogenes

    target = results_folder or RESULTS / folder.resolve().name.removeprefix("diogenes-")
    analysis = import_diogenes(folder, target)
    _tell(analysis, target)


@import_results.command()
@click.argument("report", type=click.Path(path_type=Path))
@_results_option("name of the report")
def nsys(report: Path, results_folder: Path | None) -> None:
    """Import REPORT of Nsight Systems, exported by `nsys export --type sqlite`.

    The GPU's times are those of the profiler. Which waits the program needs is not known: the screens show what
    removing each would save at most.
    """
    from ffm.sources.nsight import read_nsight
    from ffm.sources.profiled_results import write_profile

    target = results_folder or RESULTS / report.stem
    _tell(write_profile(read_nsight(report), "nsys", target), target)


@import_results.command()
@click.argument("traces", type=click.Path(path_type=Path), nargs=-1, required=True)
@_results_option("name of the first trace")
def pytorch(traces: tuple[Path, ...], results_folder: Path | None) -> None:
    """Import TRACES of PyTorch's profiler (`.json` or `.json.gz`): one, or those of all ranks of one program.

    The GPU's times are those of the profiler. Which waits the program needs is not known: the screens show what
    removing each would save at most.
    """
    from ffm.sources.profiled_results import write_profile
    from ffm.sources.pytorch import read_pytorch

    profile = read_pytorch(traces)
    target = results_folder or RESULTS / profile.application
    _tell(write_profile(profile, "pytorch", target), target)


@import_results.command()
@click.argument("folder", type=click.Path(path_type=Path))
@_results_option("name of the folder")
def otf2(folder: Path, results_folder: Path | None) -> None:
    """Import FOLDER, an OTF2 archive as Score-P writes it. Needs the extra `ffm[otf2]`.

    `ffm path` then also shows how MPI ranks and OpenMP threads wait for each other.
    """
    from ffm.sources.profiled_results import write_profile
    from ffm.sources.scorep import read_otf2

    profile = read_otf2(folder)
    target = results_folder or RESULTS / profile.application
    _tell(write_profile(profile, "otf2", target), target)


def _tell(analysis: Analysis, target: Path) -> None:
    click.echo(
        f"Imported {len(analysis.sites)} sites of {analysis.application} into {target}. "
        f"`ffm report --results {target}` shows them."
    )
