"""`ffm export`: results as one file for other tools."""

from __future__ import annotations

import sys
from collections.abc import Iterable
from pathlib import Path

import click

from ffm.cli.options import chosen_folder, open_chosen, results_option
from ffm.cli.printing import write_output
from ffm.results.memory.small_pages import small_pages


@click.command()
@results_option
@click.option(
    "--format",
    "kind",
    type=click.Choice(["json", "speedscope", "perfetto"]),
    default="json",
    show_default=True,
    help="`json`: the analysis and its columns; `speedscope`: profiles by call stack; `perfetto`: a timeline of the "
    "run.",
)
@click.option(
    "--stage",
    type=click.Choice(["baseline", "tracing", "memory", "sync-use"]),
    help="Write this stage's measurements instead of the analysis.",
)
@click.option("-o", "--output", type=click.Path(path_type=Path), help="File to write. [default: standard output]")
@small_pages()
def export(folder: Path | None, kind: str, stage: str | None, output: Path | None) -> None:
    """Write the results as one file.

    The JSON is one object. `analysis` is the document of stage 5, with times in seconds. `timeline` holds the columns
    that the model works on, by name, with one row per operation and times in nanoseconds.

    With --stage, `document` is the document of that stage and `tables` are its columnar files: columns by name, with
    one row per operation, synchronization, transfer or access. Times are nanoseconds.

    A speedscope file opens in https://www.speedscope.app. It shows time inside CUDA calls, time waiting for the GPU,
    and savings by each estimator, by call stack.

    A Perfetto trace opens in https://ui.perfetto.dev, which keeps it on your machine. It shows each thread's CUDA calls
    with their waits, a track below it with the thread's problems, verdicts and expected benefits, what each stream did
    on the GPU, as far as events and waits reveal it, the critical path, and when each GPU was idle and why.
    """
    from ffm.report.formats.export import json_chunks, speedscope

    if stage is not None:
        if kind != "json":
            raise click.UsageError("--stage writes JSON only")
        _write(_stage(folder, stage), output)
        return
    results = open_chosen(folder)
    if kind == "json":
        _write(json_chunks(results.document, results.timeline), output)
    elif kind == "speedscope":
        _write([speedscope(results.document)], output, "https://www.speedscope.app")
    else:
        from ffm.report.formats.perfetto import perfetto_chunks
        from ffm.report.numbers import chosen_estimator

        if output is None and sys.stdout.isatty():
            raise click.UsageError("a Perfetto trace is binary: name a file with -o FILE")
        _write(perfetto_chunks(results, chosen_estimator(results.document, None)), output, "https://ui.perfetto.dev")


def _stage(folder: Path | None, stage: str) -> Iterable[bytes]:
    """Return a stage's document with its tables."""
    from ffm.report.formats.export import stage_chunks
    from ffm.results.columnar.tables import stored_table
    from ffm.results.documents.document import Document
    from ffm.results.documents.measured import Baseline, Memory, SyncUse, Tracing
    from ffm.results.documents.plain import plain_document
    from ffm.results.folder.identity import read_latest
    from ffm.results.folder.paths import ResultsFolder
    from ffm.stages.registry import TABLES

    kinds: dict[str, type[Document]] = {
        "baseline": Baseline,
        "tracing": Tracing,
        "memory": Memory,
        "sync-use": SyncUse,
    }
    results = ResultsFolder(chosen_folder(folder))
    document = plain_document(read_latest(kinds[stage], results, stage))
    tables = TABLES[stage]
    return stage_chunks(
        document, {name: stored_table(document, name, tables[name], results.root) for name in document.tables}
    )


def _write(chunks: Iterable[bytes], output: Path | None, viewer: str = "") -> None:
    """Write to a file or to standard output; say where `viewer` opens the file."""
    write_output(chunks, output)
    if output is not None:
        click.echo(f"Wrote {output}." + (f" Open it in {viewer}" if viewer else ""))
