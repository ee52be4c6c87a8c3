"""Which run of a stage a document describes, so that results of different measurements are never combined.

Each run of a stage has a random identity. `measurement.json` names the latest run of each stage, from its start; each
document names its own run and those that it was built on. A document of an earlier run is out of date: its stage, or
one that it was built on, was started again and has not finished. No later stage takes it; views show the last complete
analysis, and say so.
"""

from __future__ import annotations

import secrets
from datetime import UTC, datetime
from pathlib import Path

import msgspec

from ffm.errors import DocumentError
from ffm.regular_file import read_regular
from ffm.results.documents.document import Document, DocumentType
from ffm.results.documents.files import read_owned
from ffm.results.folder.lock import LOCK_FILE, Holder, holder
from ffm.results.folder.paths import STAGES, ResultsFolder
from ffm.whole_file import write_whole

MEASUREMENT_FILE = "measurement.json"
MOST_BYTES = 1 << 16

BUILT_ON: dict[str, tuple[str, ...]] = {
    "baseline": (),
    "tracing": ("baseline",),
    "memory": ("baseline",),
    "sync-use": ("baseline", "memory"),
    "analysis": STAGES[:-1],
}
"""The stages whose documents a stage reads, including those that these were built on."""


class Latest(msgspec.Struct, frozen=True, kw_only=True):
    """The content of `measurement.json`: the latest runs, and which of them started last."""

    runs: dict[str, str] = {}
    """Identity by stage. A stage that must run again because an earlier one has is not included."""
    stage: str = ""
    began: str = ""
    """ISO 8601, UTC."""


def begin_run(folder: Path, stage: str, on: dict[str, str]) -> dict[str, str]:
    """Note that a stage starts again, built on the runs `on`; return what its document should name.

    Raises:
        OSError: `measurement.json` cannot be written.
    """
    runs = dict(latest(folder).runs) | on
    for later in STAGES:
        if stage in BUILT_ON[later]:
            runs.pop(later, None)
    runs[stage] = secrets.token_hex(8)
    began = datetime.now(UTC).isoformat(timespec="seconds")
    write_whole(folder / MEASUREMENT_FILE, msgspec.json.encode(Latest(runs=runs, stage=stage, began=began)))
    return on | {stage: runs[stage]}


def latest(folder: Path) -> Latest:
    """Return the latest runs in a folder; none for results that were not measured there, or were by an older ffm.

    Raises:
        DocumentError: The file is damaged.
    """
    path = folder / MEASUREMENT_FILE
    try:
        return msgspec.json.decode(read_regular(path, MOST_BYTES), type=Latest)
    except FileNotFoundError:
        return Latest()
    except (msgspec.MsgspecError, OSError, ValueError) as error:
        raise DocumentError(f"{path} is damaged ({error}). Measure all stages of the program again.") from error


def newer_run(folder: Path, stage: str, document: Document) -> str:
    """Return a sentence on what was started since a stage's document was written; empty if it is up to date.

    Raises:
        DocumentError: `measurement.json` is damaged.
    """
    known = latest(folder)
    # Analysing again measures nothing, and replaces the last analysis in one step.
    compared = BUILT_ON[stage] if stage == STAGES[-1] else (*BUILT_ON[stage], stage)
    expected, found = ({each: runs[each] for each in compared if each in runs} for runs in (known.runs, document.runs))
    if not known.runs or found == expected:
        return ""
    if (measuring := _measured_by(folder)) is not None:
        return f"{folder} is being measured again by {measuring}."
    began = f"Stage {known.stage} was started again in {folder} at {known.began}"
    return f"{began}, and the new measurement is not complete."


def require_latest(folder: Path, stage: str, document: Document) -> None:
    """Refuse a stage's document that is out of date.

    Raises:
        DocumentError: Says what was started since, and whether it is still running.
    """
    if newer := newer_run(folder, stage, document):
        if _measured_by(folder) is not None:
            raise DocumentError(f"{newer} {stage}.json is older: wait for the end of that measurement.")
        raise DocumentError(f"{newer} {stage}.json is older: measure what is missing, by `ffm run ./program`.")


def _measured_by(folder: Path) -> Holder | None:
    """Return who measures in a folder, if that is another process."""
    measuring = holder(folder / LOCK_FILE)
    return None if measuring is None or measuring.is_this_process else measuring


def read_latest(kind: type[DocumentType], folder: ResultsFolder, stage: str) -> DocumentType:
    """Read a stage's document of the latest run.

    Raises:
        DocumentError: It is missing, damaged, or out of date.
    """
    document, _ = read_owned(kind, folder.document(stage))
    require_latest(folder.root, stage, document)
    return document


def forget_runs(folder: Path) -> None:
    """Note that the folder's content from now on was not measured there."""
    (folder / MEASUREMENT_FILE).unlink(missing_ok=True)


def agreeing(folder: Path, documents: dict[str, Document]) -> dict[str, str]:
    """Return the runs that the documents of some stages describe and were built on.

    Raises:
        DocumentError: One is out of date, or they are of different measurements.
    """
    runs: dict[str, str] = {}
    for stage, document in documents.items():
        require_latest(folder, stage, document)
        if any(runs.get(each, run) != run for each, run in document.runs.items()):
            raise DocumentError(
                f"The documents in {folder} are of different measurements ({stage}.json of another than those before "
                "it). Run all stages again."
            )
        runs |= document.runs
    return runs
