"""Results for other tools: one JSON with every column, or speedscope profiles by call stack."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import fields
from typing import Any

import msgspec
import numpy as np
import orjson
from numpy.typing import NDArray

from ffm import __version__
from ffm.model.timeline import Timeline
from ffm.results.documents.analysis import Analysis
from ffm.results.documents.document import Document
from ffm.results.documents.site import Site
from ffm.results.places import stack_frames

CHUNK_ROWS = 1 << 20
"""Rows converted to text at once, which bounds the memory that an export needs."""


def json_chunks(analysis: Analysis, timeline: Timeline) -> Iterator[bytes]:
    """Yield one JSON object in pieces: `analysis` is the document, `timeline` its columns by name.

    Times are seconds in the document and nanoseconds in the columns (`ffm.model.timeline.Timeline`).
    """
    document = {"format": analysis.format, **msgspec.to_builtins(analysis)}
    yield b'{"exporter":' + orjson.dumps(f"ffm {__version__}") + b',"analysis":' + orjson.dumps(document)
    yield b',"timeline":{'
    for index, field in enumerate(fields(Timeline)):
        yield b"," * (index > 0) + orjson.dumps(field.name) + b":["
        yield from _numbers(getattr(timeline, field.name))
        yield b"]"
    yield b"}}\n"


def stage_chunks(document: Document, tables: Mapping[str, Mapping[str, NDArray[Any]]]) -> Iterator[bytes]:
    """Yield one JSON object in pieces: `document` of a measuring stage, and `tables`, its columnar files by name.

    Times are seconds in the document and nanoseconds in the columns.
    """
    content = {"format": document.format, **msgspec.to_builtins(document)}
    yield b'{"exporter":' + orjson.dumps(f"ffm {__version__}") + b',"document":' + orjson.dumps(content)
    yield b',"tables":{'
    for place, (name, columns) in enumerate(tables.items()):
        yield b"," * (place > 0) + orjson.dumps(name) + b":{"
        for index, (column, values) in enumerate(columns.items()):
            yield b"," * (index > 0) + orjson.dumps(column) + b":["
            yield from _numbers(values)
            yield b"]"
        yield b"}"
    yield b"}}\n"


def _numbers(column: NDArray[Any]) -> Iterator[bytes]:
    """Yield a column's values separated by commas."""
    for begin in range(0, len(column), CHUNK_ROWS):
        part = np.ascontiguousarray(column[begin : begin + CHUNK_ROWS])
        yield b"," * (begin > 0) + orjson.dumps(part, option=orjson.OPT_SERIALIZE_NUMPY)[1:-1]


def speedscope(analysis: Analysis) -> bytes:
    """Return a file for speedscope (github.com/jlfwong/speedscope, `src/lib/file-format-spec.ts`).

    The profiles share the same call stacks, with one sample per site, weighted in seconds: time inside CUDA calls, time
    waiting for the GPU, and what fixing each site alone would save by each estimator.
    """
    weights: list[tuple[str, Callable[[Site], float]]] = [
        ("time in CUDA calls", lambda site: site.total_s),
        ("waiting for the GPU", lambda site: site.wait_s),
        ("saving, each site alone, by carry", lambda site: site.benefit.carry_s),
        ("saving, each site alone, by bound", lambda site: site.benefit.bound_s),
    ]
    if analysis.estimator == "replay":
        weights.append(
            ("saving, each site alone, by replay", lambda site: site.benefit.replay_s or site.benefit.carry_s)
        )
    frames: dict[tuple[str, str, int], int] = {}
    samples = [
        [frames.setdefault(frame, len(frames)) for frame in _named_stack(analysis, index)]
        for index in range(len(analysis.sites))
    ]
    content = {
        "$schema": "https://www.speedscope.app/file-format-schema.json",
        "name": analysis.application,
        "exporter": f"ffm {__version__}",
        "activeProfileIndex": 0,
        "shared": {"frames": [_frame(*frame) for frame in frames]},
        "profiles": [_profile(name, analysis, samples, weight) for name, weight in weights],
    }
    return orjson.dumps(content)


def _named_stack(analysis: Analysis, index: int) -> Iterator[tuple[str, str, int]]:
    """Yield function, file and line of a site's frames, outermost first; a place stands for a frame without a name."""
    for frame in reversed(stack_frames(analysis, index)):
        yield frame.function or frame.place, frame.file, frame.line


def _frame(name: str, file: str, line: int) -> dict[str, object]:
    frame: dict[str, object] = {"name": name}
    if file:
        frame["file"] = file
    if line:
        frame["line"] = line
    return frame


def _profile(
    name: str, analysis: Analysis, samples: list[list[int]], weight: Callable[[Site], float]
) -> dict[str, object]:
    """Return a sampled profile. Sites without weight are left out because they would be invisible."""
    weighted = [
        (sample, weight(site)) for sample, site in zip(samples, analysis.sites, strict=True) if weight(site) > 0
    ]
    return {
        "type": "sampled",
        "name": name,
        "unit": "seconds",
        "startValue": 0,
        "endValue": sum(seconds for _, seconds in weighted),
        "samples": [sample for sample, _ in weighted],
        "weights": [seconds for _, seconds in weighted],
    }
