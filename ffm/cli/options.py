"""Options that several commands share, and the help text for their JSON."""

from __future__ import annotations

import dataclasses
import inspect
import os
import shlex
import typing
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click

from ffm.errors import DocumentError

if TYPE_CHECKING:
    from ffm.results.stored import Results

RESULTS = Path("results")
ANALYSIS = "analysis.json"

Decorated = TypeVar("Decorated", bound=Callable[..., Any])

PROGRAM_LAST = {"allow_interspersed_args": False}
"""Settings of commands that end with a program to measure: words after it, such as `-n 5`, are its own arguments."""


def results_option(command: Decorated) -> Decorated:
    """`--results FOLDER`; the default is the newest one."""
    return click.option(
        "--results",
        "folder",
        type=click.Path(path_type=Path),
        help=f"Folder with one program's results. [default: the newest below ./{RESULTS}]",
    )(command)


def results_target_option(name: str) -> Callable[[Decorated], Decorated]:
    """`--results FOLDER` for a new measurement; `name` is what the default folder below `results` is named after."""
    return click.option(
        "--results",
        type=click.Path(file_okay=False, path_type=Path),
        metavar="FOLDER",
        help=f"Where the results go. [default: {RESULTS}/<{name}>]",
    )


def estimator_option(command: Decorated) -> Decorated:
    """`--estimator replay|carry|bound`."""
    return click.option(
        "--estimator",
        type=click.Choice(["replay", "carry", "bound"]),
        help="The estimate to sort by and show first; `ffm report` explains each. [default: replay, or carry for "
        "imported results, which cannot be replayed]",
    )(command)


def json_option(command: Decorated) -> Decorated:
    """`--json`."""
    return click.option("--json", "as_json", is_flag=True, help="Print what the screen shows, as JSON.")(command)


def limit_options(command: Decorated) -> Decorated:
    """`--timeout SECONDS` and `--accept-status N`, for commands that run the program several times."""
    command = click.option(
        "--accept-status",
        type=click.IntRange(0, 255),
        metavar="N",
        help="An exit code besides 0 with which the program may end.",
    )(command)
    return click.option(
        "--timeout",
        type=click.FloatRange(min=0, min_open=True),
        metavar="SECONDS",
        help="Stop each run of the program after this time.",
    )(command)


class Duration(click.ParamType[float]):
    """A time such as `60s`, in seconds."""

    name = "duration"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> float:
        """Return the seconds, or refuse the text in one sentence."""
        from ffm.instrument.session.portion import PortionError, read_duration

        if isinstance(value, float):
            return value
        try:
            return read_duration(str(value))
        except PortionError as error:
            self.fail(str(error), param, ctx)


def for_option(command: Decorated) -> Decorated:
    """`--for DURATION`, for programs that do not end."""
    return click.option(
        "--for",
        "for_s",
        type=Duration(),
        metavar="DURATION",
        help="End the recording, and then the program, this long after its first driver call (`60s`, `5min`).",
    )(command)


def scheduler_option(command: Decorated) -> Decorated:
    """`--scheduler ADDRESS`, for the analysis."""
    return click.option(
        "--scheduler",
        metavar="ADDRESS",
        help="Let the workers of this Dask scheduler share the analysis; they must see the results folder at the same "
        "path. Without it, large analyses use all processors of this machine.",
    )(command)


def memory_option(command: Decorated) -> Decorated:
    """`--memory MIB`, for the analysis."""
    return click.option(
        "--memory",
        "memory_mib",
        type=click.IntRange(min=0),
        metavar="MIB",
        help="How much memory the analysis takes before it keeps its columns in files in the results folder, which "
        "changes no result. [default: half of what is free]",
    )(command)


def last_option(command: Decorated) -> Decorated:
    """`--last DURATION`, for programs that never end."""
    return click.option(
        "--last",
        "last_s",
        type=Duration(),
        metavar="DURATION",
        help="Keep only this much of the end of the recording (`60s`, `5min`), so that its size does not grow "
        "with the run. The recording ends with the program, at Ctrl-C, or after the time of --for.",
    )(command)


def detach_option(command: Decorated) -> Decorated:
    """`--detach`, for programs that must keep running."""
    return click.option(
        "--detach",
        is_flag=True,
        help="Leave the program running when the time of --for is over, or at Ctrl-C; it goes on unmeasured.",
    )(command)


def require_time(detach: bool, for_s: float | None) -> None:
    """Refuse to leave a program running without a time.

    Raises:
        click.UsageError: `--detach` was given without `--for`.
    """
    if detach and for_s is None:
        raise click.UsageError("--detach leaves the program running after some time: say how long with --for.")


def require_all(last_s: float | None, portion: object | None) -> None:
    """Refuse to keep the last seconds of a portion.

    Raises:
        click.UsageError: `--last` was given with a portion of the run.
    """
    if last_s is not None and portion is not None:
        raise click.UsageError("--last keeps the end of the run: leave out --window, --ranges and --iterations.")


def portion_options(command: Decorated) -> Decorated:
    """`--window START..END`, `--ranges NAME` and `--iterations 1/N`: the portion of the run to measure."""
    command = click.option(
        "--iterations",
        metavar="1/N",
        help="Measure every N-th iteration that the program marks (those of --ranges, or any).",
    )(command)
    command = click.option(
        "--ranges",
        metavar="NAME",
        help="Measure only the iterations that the program marks with this name, by ffm.iteration or as ranges of "
        "NVTX. It can be a pattern, such as `step *`.",
    )(command)
    return click.option(
        "--window",
        metavar="START..END",
        help="Measure only this part of the run, in seconds since the program's first driver call (`60..90`, `60..`), "
        "or in its calls that transfer, launch, wait, allocate or free (`'20000..30000 calls'`). "
        "Stage 1 still measures the whole run.",
    )(command)


def open_chosen(folder: Path | None) -> Results:
    """Open the given results, or the newest ones; say if a newer measurement of them is not complete.

    Raises:
        DocumentError: No results exist, or they are damaged or of another version.
    """
    from ffm.results.stored import open_results

    results = open_results(analysed_folder(folder))
    if results.newer:
        words = shlex.join(results.document.command)
        click.echo(f"{results.newer} These are the results of the last complete one, of `{words}`.", err=True)
    return results


def chosen_folder(folder: Path | None) -> Path:
    """Return the given results folder, or the newest one.

    Raises:
        DocumentError: No such folder exists, or no stage has written to it.
    """
    from ffm.results.folder.paths import STAGES, ResultsFolder

    if folder is None:
        return newest_results(RESULTS)
    if not folder.is_dir():
        what = "is not a folder" if folder.exists() else "does not exist"
        raise DocumentError(f"the results folder {folder} {what}: name another.")
    if not any(ResultsFolder(folder).document(stage).exists() for stage in STAGES):
        raise DocumentError(
            f"there are no results in {folder}: name another folder, or measure a program with `ffm run --results "
            "FOLDER ./program`."
        )
    return folder


def analysed_folder(folder: Path | None) -> Path:
    """Return the given results folder, or the newest one, if its measurement is complete.

    Raises:
        DocumentError: No such folder exists, or a stage has not written to it.
    """
    from ffm.results.folder.paths import STAGES, ResultsFolder

    results = ResultsFolder(chosen_folder(folder))
    absent = [stage for stage in STAGES if not results.document(stage).exists()]
    if STAGES[-1] in absent:
        raise DocumentError(
            f"the measurement in {results.root} is incomplete, without {', '.join(absent)}: give `ffm run "
            f"--results {shlex.quote(str(results.root))}` the same program, and it goes on from there."
        )
    return results.root


def results_words(folder: Path | None) -> str:
    """Return `--results FOLDER` as the user gave it, for commands that screens print; empty if it was not given."""
    return "" if folder is None else f"--results {shlex.quote(str(folder))}"


def checkout() -> Path:
    """Return the folder to which logs name source files: that of the checkout in a job of GitHub, which uploads them
    from there, otherwise the current one.
    """
    current, workspace = Path.cwd(), os.environ.get("GITHUB_WORKSPACE")
    return Path(workspace) if workspace and current.is_relative_to(workspace) else current


def newest_results(parent: Path) -> Path:
    """Return the folder below `parent` whose analysis was written last.

    Raises:
        DocumentError: There is none.
    """
    analyses = [path for path in parent.glob(f"*/{ANALYSIS}") if path.is_file()]
    if analyses:
        return max(analyses, key=lambda path: path.stat().st_mtime_ns).parent
    unfinished = sorted(path.name for path in parent.glob("*/") if path.is_dir())
    if unfinished:
        raise DocumentError(
            f"the results in ./{parent} are incomplete ({', '.join(unfinished)}): measure again with "
            "`ffm run ./program`."
        )
    raise DocumentError(
        f"there are no results in ./{parent}: measure a program with `ffm run ./program`, or name a "
        "results folder with --results FOLDER."
    )


_JSON_REQUESTED = "ffm.json_requested"
"""Whether the arguments ask for JSON, in a context's `meta`: help comes before they are converted."""


class ViewCommand(click.Command):
    """A command whose help also describes the fields of its JSON if the arguments ask for JSON. The fields are read
    from the dataclass that it prints.
    """

    views: tuple[str, ...] = ()
    """Module and class of what it prints: `ffm.report.overview:Overview`."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Note whether the arguments ask for JSON. If they are wrong, say how to name a results folder among them."""
        words = list(args)
        ctx.meta[_JSON_REQUESTED] = not {"--json", "json", "--format=json"}.isdisjoint(words)
        try:
            return super().parse_args(ctx, args)
        except click.UsageError as error:
            folders = [word for word in words if Path(word, ANALYSIS).is_file()]
            if not folders or any(word.startswith("--results") for word in words):
                raise
            meant = f"{error.message.rstrip('.')}. Did you mean --results {folders[0]}?"
            raise click.UsageError(meant, ctx) from error

    def format_epilog(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Add a section for each class that occurs in the JSON, or say how to see them."""
        super().format_epilog(ctx, formatter)
        if ctx.meta.get(_JSON_REQUESTED, False):
            self._describe_json(formatter)
            return
        option = "--json" if any("--json" in param.opts for param in self.params) else "--format json"
        formatter.write_paragraph()
        formatter.write_text(f"`{ctx.command_path} {option} --help` describes the fields of the JSON.")

    def _describe_json(self, formatter: click.HelpFormatter) -> None:
        import importlib

        names = [view.rpartition(":")[2] for view in self.views]
        modules = [importlib.import_module(view.partition(":")[0]) for view in self.views]
        printed = [getattr(module, name) for module, name in zip(modules, names, strict=True)]
        for kind in dict.fromkeys(kind for each in printed for kind in _classes(each)):
            title = "JSON" if kind.__name__ == names[0] else f"JSON: {kind.__name__}"
            with formatter.section(title):
                formatter.write_text(" ".join((inspect.getdoc(kind) or "").split()))
                formatter.write_dl([(field.name, str(field.type)) for field in dataclasses.fields(kind)])


def view_command(*views: str) -> type[ViewCommand]:
    """Return the class for a command that prints one of the views, each named `module:class`."""
    return type("ViewCommand", (ViewCommand,), {"views": views})


def _classes(kind: type) -> list[Any]:
    """Return a dataclass and all dataclasses inside its fields, outer ones first."""
    found: dict[Any, None] = {}
    waiting: list[Any] = [kind]
    while waiting:
        current = waiting.pop(0)
        if dataclasses.is_dataclass(current) and current not in found:
            found[current] = None
            waiting += typing.get_type_hints(current).values()
        else:
            waiting += typing.get_args(current)
    return list(found)
