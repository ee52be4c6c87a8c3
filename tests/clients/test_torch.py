"""PyTorch's CUDA build, the largest third-party client, on the virtual GPU; `build_torch.sh` installs it.

Its kernels take their time and change nothing: only calls, waits and stacks are PyTorch's own. The programs are those
that `benchmarks/gpu/check.sh` measures on a GPU."""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from ffm.results.documents.analysis import Analysis
from ffm.results.documents.site import Site
from ffm.results.vocabulary import Because
from tests.clients.gating import gate
from tests.clients.scripts import BUILD, HERE, TARGETS, marked_line, measured, printed, virtual_gpu

ENVIRONMENT = Path(os.environ.get("FFM_TORCH", BUILD / "torch" / "env"))
PYTHON = ENVIRONMENT / "bin" / "python"
PROGRAMS = HERE.parents[1] / "benchmarks" / "programs" / "python"

pytestmark = pytest.mark.skipif(
    not list(ENVIRONMENT.glob("lib/python*/site-packages/torch/lib/libtorch_cuda.so")),
    reason="PyTorch is not installed for the virtual GPU: run tests/clients/build_torch.sh",
)


@dataclass(frozen=True)
class Target:
    """A program with a problem, and the finding at its marked line."""

    name: str
    call: str
    verdicts: frozenset[str]


TARGETS_FOUND = [
    Target("torch_unused_cpu", "cudaMemcpyAsync", frozenset({"conditionally unnecessary", "unnecessary"})),
    Target("torch_pageable", "cudaMemcpyAsync", frozenset({"repeat"})),
    # Each number that .item() fetches is used at once, and a clock is read after each wait, so these waits are needed.
    Target("torch_item", "cudaStreamSynchronize", frozenset({"required"})),
    Target("torch_timing", "cudaDeviceSynchronize", frozenset({"required"})),
]


@pytest.fixture(autouse=True)
def _virtual_gpu() -> Iterator[None]:
    with virtual_gpu("torch.vgpu"):
        yield


def sites_at_mark(analysis: Analysis, program: Path) -> list[Site]:
    """Return the calls whose stacks lead through the marked line of the program."""
    line = marked_line(program)
    return [
        site
        for site in analysis.sites
        if any(frame.line == line and frame.file.endswith(program.name) for frame in analysis.stacks[site.stack].frames)
    ]


@pytest.mark.parametrize("target", TARGETS_FOUND, ids=lambda target: target.name)
def test_what_is_found_at_the_marked_line(target: Target, tmp_path: Path) -> None:
    program = TARGETS / f"{target.name}.py"
    analysis = measured(PYTHON, program, tmp_path, ordinary_memory=False)
    (site,) = (site for site in sites_at_mark(analysis, program) if site.call == target.call)
    assert (site.file, site.count) == (str(program), sum(v.occurrences for v in site.synchronization) or site.count)
    assert {verdict.kind for verdict in (*site.synchronization, *site.transfer)} & target.verdicts
    assert (site.problem_count > 0) == ("required" not in target.verdicts)
    assert analysis.matching.unmatched_s == 0


@pytest.mark.parametrize(("name", "turns"), [("torch_elements", 50), ("torch_picks", 30), ("torch_samples", 30)])
def test_what_kernels_do_not_use_as_addresses_leaves_the_watch_on(name: str, turns: int, tmp_path: Path) -> None:
    program = HERE / f"{name}.py"
    analysis = measured(PYTHON, program, tmp_path)
    (site,) = sites_at_mark(analysis, program)
    assert (site.call, site.count) == ("cudaDeviceSynchronize", turns)
    assert {verdict.kind for verdict in site.synchronization} <= {"conditionally unnecessary", "unnecessary"}


def test_streams_of_threads_are_apart_whose_kernels_use_no_variables(tmp_path: Path) -> None:
    """PyTorch's code has variables, but the kernels here do not read their addresses."""
    program = HERE / "torch_threads.py"
    (site,) = sites_at_mark(measured(PYTHON, program, tmp_path), program)
    assert (site.call, site.count) == ("cudaStreamSynchronize", 30)
    assert {verdict.kind for verdict in site.synchronization} <= {"conditionally unnecessary", "unnecessary"}


@pytest.mark.parametrize("name", [target.name for target in TARGETS_FOUND])
def test_the_mended_program_prints_the_same(name: str) -> None:
    assert len(set(printed(PYTHON, name, f"{name}_fixed"))) == 1


def test_the_gate_names_the_lines_that_lead_to_waits(tmp_path: Path) -> None:
    found = gate(PYTHON, HERE / "torch_gate.py", tmp_path, "", "--iterations", "train step")
    assert found.code == 1
    assert found.at("pageable") == [("cudaMemcpyAsync", 6, 1)]
    assert found.at("item") == [("cudaStreamSynchronize", 6, 1)]
    assert found.at("on a thread") == [("cudaStreamSynchronize", 4, 2)]
    assert found.at("at the end") == [("cudaDeviceSynchronize", 1, 1)]
    (iterated,) = found.view["iterations"]
    assert (iterated["thread"], iterated["iterations"], iterated["waits"]["median"]) == (1, 5, 2)
    allowed = "".join(
        f'[[allow]]\n{how}\nreason = "told"\n'
        for how in ('file = "torch_gate.py"', 'stack = ["libtorch*", "evaluate"]', 'call = "cudaDevice*"')
    )
    assert gate(PYTHON, found.script, tmp_path, allowed).code == 0


def measured_with_products(program: Path, folder: Path, *, ordinary_memory: bool = True) -> Analysis:
    with pytest.MonkeyPatch.context() as environment:
        environment.setenv("DISABLE_ADDMM_CUDA_LT", "1")  # the stand-in for cuBLASLt refuses
        return measured(PYTHON, program, folder, ordinary_memory=ordinary_memory)


@pytest.mark.parametrize("ordinary_memory", [True, False])
def test_copies_of_batches_wait_for_their_source_alone(ordinary_memory: bool, tmp_path: Path) -> None:
    """What PyTorch gives to `total += loss` holds a stale pointer to the batch, which the kernel does not use."""
    program = HERE / "torch_blocking.py"
    analysis = measured_with_products(program, tmp_path, ordinary_memory=ordinary_memory)
    waits = [site for site in sites_at_mark(analysis, program) if site.call == "cudaStreamSynchronize"]
    (sent,) = (wait for wait in analysis.sending if analysis.sites[wait.site] in waits)
    assert (sent.occurrences, sent.pageable) == (19, False)  # after the last batch, nothing comes
    reasons = {verdict.because for site in waits for verdict in site.synchronization if verdict.kind == "required"}
    assert reasons <= {Because.SOURCE_OVERWRITTEN, Because.SOURCE_OVERWRITTEN_UNSEEN}
    assert analysis.fetching == []


def test_pinned_memory_that_pytorch_hands_out_again_needs_no_wait(tmp_path: Path) -> None:
    program = PROGRAMS / "torch_loader.py"
    line = 1 + program.read_text().splitlines().index("        torch.cuda.synchronize()")
    analysis = measured_with_products(program, tmp_path)
    (site,) = (
        site
        for site in analysis.sites
        if site.call == "cudaDeviceSynchronize" and any(f.line == line for f in analysis.stacks[site.stack].frames)
    )
    assert {verdict.kind for verdict in site.synchronization} <= {"conditionally unnecessary", "unnecessary"}


def test_pinned_memory_that_the_script_keeps_needs_the_wait(tmp_path: Path) -> None:
    program = HERE / "torch_held.py"
    (site,) = sites_at_mark(measured(PYTHON, program, tmp_path), program)
    (needed,) = (verdict.occurrences for verdict in site.synchronization if verdict.kind == "required")
    assert (site.call, site.count, needed) == ("cudaDeviceSynchronize", 20, 19)
