"""Reads the files that the published Diogenes wrote about a program."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import msgspec

from ffm.errors import DocumentError, SourceError, UnreadableError
from ffm.regular_file import read_regular
from ffm.results.documents.fields import Number
from ffm.results.documents.files import MOST_BYTES

STACKS_FILE = "combined_stacks.json"
TIME_FILE = "ttime.txt"
LIST_FILE = "sequential_pproc.json"

Seconds = Annotated[float, msgspec.Meta(ge=0, le=1e8)]
Count = Annotated[int, msgspec.Meta(ge=0, le=1 << 40)]


class RecordedFrame(msgspec.Struct):
    """A frame of a call stack."""

    position: int
    funcname: str
    filename: str
    linenum: Number
    libname: str
    liboffset: Annotated[int, msgspec.Meta(ge=0)]
    md5sum: str | None = None


class Record(msgspec.Struct):
    """A distinct call stack as Diogenes wrote it, without the fields that it never fills or ffm does not use."""

    number: int = msgspec.field(name="GlobalID")
    order: int = msgspec.field(name="tf_id")
    count: Count = msgspec.field(name="count")
    total: Seconds = msgspec.field(name="total_time")
    wait: Seconds = msgspec.field(name="SyncOnlyTime")
    waits: Count = msgspec.field(name="SyncOnlyCount")
    gap: Seconds = msgspec.field(name="DeltaTime")
    gaps: Count = msgspec.field(name="DeltaCount")
    transfers: Count = msgspec.field(name="Transfer Count")
    collisions: list[int] = msgspec.field(name="TransferCollisions")
    overwrites: Count = msgspec.field(name="TransferOverwrites")
    uses: Count = msgspec.field(name="Sync Uses")
    dependencies: list[int] = msgspec.field(name="Dependencies")
    stack: Annotated[list[RecordedFrame], msgspec.Meta(min_length=1)] = msgspec.field(name="Stack")

    @property
    def duplicates(self) -> int:
        """Transfers whose content had already been transferred."""
        return len(self.collisions) + self.overwrites


def read_records(folder: Path) -> list[Record]:
    """Read the records of traced operations, in program order.

    Raises:
        DocumentError: The file is missing, is not complete JSON, or contains something else.
    """
    path = folder / STACKS_FILE
    try:
        records = msgspec.json.decode(read_regular(path, MOST_BYTES), type=list[Record])
    except FileNotFoundError:
        raise DocumentError(
            f"{path} does not exist: name the folder that contains Diogenes's {STACKS_FILE} and {TIME_FILE}."
        ) from None
    except OSError as error:
        raise UnreadableError(str(path), error) from error
    except msgspec.ValidationError as error:
        raise SourceError(f"{path} does not contain Diogenes's records of call stacks ({error}).") from error
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise DocumentError(f"{path} is not complete JSON ({error}): copy it again.") from error
    traced = sorted((record for record in records if record.count > 0), key=lambda record: record.order)
    if not traced:
        raise SourceError(f"{path} contains no traced operation, so there is nothing to show.")
    return traced


def read_wall_time(folder: Path) -> float:
    """Read the run's seconds.

    Raises:
        DocumentError: The file is missing or does not contain one positive number.
    """
    path = folder / TIME_FILE
    try:
        seconds = float(read_regular(path, MOST_BYTES).decode())
    except FileNotFoundError:
        raise SourceError(f"{path} does not exist: it must contain the run time in seconds.") from None
    except OSError as error:
        raise UnreadableError(str(path), error) from error
    except ValueError:
        raise SourceError(f"{path} must contain the run time in seconds, one number.") from None
    if not 0 < seconds < 1e9:
        raise SourceError(f"{path} gives a run time of {seconds} s; it must be positive.")
    return seconds


def read_listed(folder: Path) -> list[float] | None:
    """Read the seconds of the sequences that Diogenes listed; None if its list was not copied with the other files.

    Raises:
        DocumentError: The list is not complete JSON, or contains something else.
    """
    path = folder / LIST_FILE
    try:
        listed = msgspec.json.decode(read_regular(path, MOST_BYTES), type=list[tuple[Seconds, str]])
    except FileNotFoundError:
        return None
    except OSError as error:
        raise UnreadableError(str(path), error) from error
    except msgspec.ValidationError as error:
        raise SourceError(f"{path} does not contain Diogenes's list of sequences ({error}).") from error
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise DocumentError(f"{path} is not complete JSON ({error}): copy it again, or remove it.") from error
    return [seconds for seconds, _ in listed]
