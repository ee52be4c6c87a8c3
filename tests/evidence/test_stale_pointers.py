"""A stale pointer to pinned memory, in a word that a kernel does not use as an address, lets no wait count as required.

PyTorch leaves such pointers in what it gives its kernels: those of a `DataLoader`'s batches.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from ffm.results.documents.analysis import Analysis
from tests.evidence.stale_members import (
    MACHINE_CODE_CASES,
    PTX_CASES,
    accept_machine_code,
    analysed,
    loading,
    registering,
)
from tests.native.cubins import cubin

ALLOCATED, DOWNLOADED = "void *host = malloc(bytes);", "cuMemcpyDtoH(host, written, bytes) == 0"
PINNED = "void *host = nullptr;"
WAITED = "cuCtxSynchronize() == 0 && *static_cast<volatile int *>(host) >= 0"


def with_pinned(source: Path) -> Path:
    """Return a changed program, which waits for the kernel and reads the pinned memory to which the pointer leads."""
    text = source.read_text()
    assert ALLOCATED in text and DOWNLOADED in text
    text = text.replace(ALLOCATED, PINNED).replace(DOWNLOADED, WAITED)
    changed = source.with_stem(f"pinned_{source.stem}")
    changed.write_text(text.replace("cuMemAlloc(&written", "cuMemAllocHost(&host, bytes) == 0 && cuMemAlloc(&written"))
    return changed


def verdicts_of_wait(analysis: Analysis) -> list[str]:
    (wait,) = (site for site in analysis.sites if site.function == "cuCtxSynchronize")
    return [verdict.kind for verdict in wait.synchronization]


@pytest.mark.parametrize("ordinary_memory", [True, False])
@pytest.mark.parametrize(("kernel", "body", "kind"), PTX_CASES)
def test_a_member_that_no_code_of_the_kernel_reads(
    build_program: Callable[..., Path], tmp_path: Path, kernel: str, body: str, kind: str, ordinary_memory: bool
) -> None:
    source = with_pinned(registering(tmp_path, kernel, body))
    analysis = analysed(tmp_path, [str(build_program(source, "-l:libcuda.so.1"))], ordinary_memory)
    assert verdicts_of_wait(analysis) == [kind]


@pytest.mark.parametrize("ordinary_memory", [True, False])
@pytest.mark.parametrize(("kernel", "body", "kind"), MACHINE_CODE_CASES)
def test_a_member_that_machine_code_does_not_use_as_an_address(
    build_program: Callable[..., Path],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    kernel: str,
    body: list[tuple[int, int]],
    kind: str,
    ordinary_memory: bool,
) -> None:
    """Also where no GPU uses ordinary memory."""
    accept_machine_code(tmp_path, monkeypatch)
    source = with_pinned(loading(tmp_path, kernel, cubin(kernel, [(0, 8), (8, 16)], body)))
    analysis = analysed(tmp_path, [str(build_program(source, "-l:libcuda.so.1"))], ordinary_memory)
    assert verdicts_of_wait(analysis) == [kind]
