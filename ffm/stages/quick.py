"""Quick mode: one traced run, which shows what removing each wait or transfer would save at most.

Nothing is proved, since only the stages after tracing find out what the program needs. The results say which sites are
worth measuring with all stages.
"""

from __future__ import annotations

import numpy as np

from ffm.errors import DocumentError, ProgramError
from ffm.evidence.device_work import device_work
from ffm.evidence.documented_waits import with_documented_waits
from ffm.evidence.marked_iterations import rows_of_marked
from ffm.evidence.operations import EVENTS, function_name
from ffm.evidence.transfers.staged_copies import sites_of_staged_copies
from ffm.model.estimators.replay import Replay
from ffm.model.gpu_times.inference import infer_likely_times
from ffm.results.columnar.columns import Columns
from ffm.results.columnar.tables import stored_table
from ffm.results.documents.analysis import Analysis
from ffm.results.documents.files import read_owned
from ffm.results.documents.measured import Tracing
from ffm.results.documents.stacks import Stack
from ffm.results.folder.identity import begin_run
from ffm.results.folder.lock import writing_to
from ffm.results.folder.paths import ResultsFolder, application_name
from ffm.stages.analysis.findings import Findings, SiteDescription
from ffm.stages.analysis.notes import cut_notes, host_function_notes, stack_notes, tracing_notes, unrecorded_notes
from ffm.stages.analysis.results import write_results
from ffm.stages.analysis.timelines import longer_by, traced_timeline
from ffm.stages.measure import Request, measure, require_program
from ffm.stages.tracing import OBSERVED, record_tracing, traced_functions, without_ties
from ffm.symbols.launched import kernels_of_sites
from ffm.symbols.named_stacks import name_stacks, unread_python
from ffm.symbols.symbolizer import Symbolizer


def run_quick(request: Request) -> Analysis:
    """Trace one run of the program, and write `tracing.json` and `analysis.json`, with the quick mode as its origin.

    Raises:
        DocumentError: The folder holds a measurement by all stages, or another process writes there.
        ProgramError: The program could not be measured, or failed.
    """
    if request.folder.document("baseline").exists():
        raise DocumentError(
            f"{request.folder.root} holds a measurement by all stages, which one run cannot replace. Choose another "
            "folder with --results."
        )
    require_program(request)
    request.folder.make()
    with writing_to(request.folder.root, "ffm run --quick"):
        measured = measure(
            "tracing",
            request,
            on={},
            functions=traced_functions(),
            mode=without_ties(OBSERVED, request),
            ranges=True,
            portion=request.portion,
        )
        record_tracing(measured, request)
        return analyse_trace(request.folder, request.folder)


def analyse_trace(source: ResultsFolder, target: ResultsFolder) -> Analysis:
    """Write the quick mode's results into `target`, from the traced run in `source`.

    Raises:
        DocumentError: The traced run is missing or damaged.
        ProgramError: The program did not use the GPU.
    """
    tracing, own = read_owned(Tracing, source.document("tracing"))
    columns: Columns = stored_table(tracing, "events", EVENTS, source.root)
    run = tracing.run
    if run is None or not len(columns["start"]):
        program = run.command[0] if run is not None and run.command else "The program"
        raise ProgramError(
            f"{program} loaded a CUDA driver but did not use the GPU: it allocated, copied and launched nothing. There "
            "is nothing to measure."
        )
    runs = begin_run(target.root, "analysis", tracing.runs)
    if not run.sees_waits:
        columns = with_documented_waits(columns)
    traced = traced_timeline(columns)
    work = device_work(columns, traced.thread, np.full(len(traced), -1, np.int64), tracing)
    inference = infer_likely_times(traced, work, tracing.wait_latency.least)
    timeline = Replay(traced, work, inference).without_probes(columns["probe"])
    named = name_stacks(tracing.stacks, tracing.modules, Symbolizer())
    findings = Findings(
        application=application_name(run.command),
        command=run.command,
        wall_s=run.wall_s,
        timeline=timeline,
        sites=_sites(columns, named.stacks),
        stacks=named.stacks,
        modules=named.modules,
        origin="quick",
        runs=runs,
        run=run,
        notes=named.notes
        + unread_python(run)
        + unrecorded_notes([tracing])
        + cut_notes([tracing])
        + tracing_notes(tracing)
        + host_function_notes(columns)
        + stack_notes(tracing.stacks, columns),
        work=work,
        presumed=True,
        staged=sites_of_staged_copies(columns),
        wait_latency=tracing.wait_latency,
        marked=rows_of_marked(tracing.marked, columns, traced.thread),
        probes_s=longer_by(traced, timeline),
        sampled=tracing.sampled,
        kernels=kernels_of_sites(tracing.kernels),
    )
    return write_results(findings, target.root, own=own)


def _sites(columns: Columns, stacks: list[Stack]) -> list[SiteDescription]:
    """Describe each stack, without verdicts."""
    function = np.full(len(stacks), -1, np.int64)
    function[columns["stack"]] = columns["function"]
    moved = np.bincount(columns["stack"], weights=columns["bytes"], minlength=len(stacks))
    return [
        SiteDescription(stack, function_name(int(function[stack])) if function[stack] >= 0 else "", int(moved[stack]))
        for stack in range(len(stacks))
    ]
