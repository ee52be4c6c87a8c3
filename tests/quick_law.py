"""The law of quick mode: no proof exceeds what it says that removing a call saves at most."""

from __future__ import annotations

from pathlib import Path

from ffm.evidence.operations import EVENTS
from ffm.results.columnar.tables import stored_table
from ffm.results.documents.analysis import Analysis
from ffm.results.documents.files import read_owned
from ffm.results.documents.measured import Tracing
from ffm.results.folder.paths import ResultsFolder
from ffm.stages.quick import analyse_trace


def below_proof(proved: Analysis, results: Path) -> list[str]:
    """Return a sentence for each site of which all stages prove more than quick mode promises for the same trace.

    Both take the probes' time out of the trace. How much of it a wait then takes back depends on what is known of the
    GPU's times, so they may differ by that.
    """
    folder, quick = ResultsFolder(results), ResultsFolder(results / "quick")
    quick.make()
    most = {wait.site: wait.high_s for wait in analyse_trace(folder, quick).unproved}
    tracing, _ = read_owned(Tracing, folder.document("tracing"))
    probes_s = float(stored_table(tracing, "events", EVENTS, results)["probe"].sum()) / 1e9
    return [
        f"{site.call} at {site.file}:{site.line} saves {site.benefit.expected_s} s, not at most {most.get(index, 0.0)}"
        for index, site in enumerate(proved.sites)
        if site.benefit.expected_s > most.get(index, 0.0) + probes_s
    ]
