"""A stale pointer to pinned memory, in a word that a kernel does not use as an address, lets no wait count as required.

PyTorch leaves such pointers in what it gives its kernels: those of a `DataLoader`'s batches.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from ffm.results.documents.analysis import Analysis
from tests.evidence.test_ordinary_memory import COUNT, POINTER, STORE, UNSET, analysed, registering
from tests.native.cubins import EXIT, cubin, store

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
@pytest.mark.parametrize(
    ("kernel", "body", "kind"),
    [
        ("_Z6unreadPi5Given", "", "unnecessary"),
        ("_Z4readPi5Given", "ld.param.u64 %rd3, [given];\n st.global.u64 [%rd1+8], %rd3;", "required"),
        ("plain", "", "required"),  # another file may have another kernel of that name
    ],
)
def test_a_member_that_no_code_of_the_kernel_reads(
    build_program: Callable[..., Path], tmp_path: Path, kernel: str, body: str, kind: str, ordinary_memory: bool
) -> None:
    source = with_pinned(registering(tmp_path, kernel, body))
    analysis = analysed(tmp_path, [str(build_program(source, "-l:libcuda.so.1"))], ordinary_memory)
    assert verdicts_of_wait(analysis) == [kind]


@pytest.mark.parametrize("ordinary_memory", [True, False])
@pytest.mark.parametrize(
    ("kernel", "body", "kind"),
    [
        ("without", [POINTER, COUNT, STORE, EXIT], "unnecessary"),
        ("stores_there", [POINTER, UNSET, COUNT, STORE, store(6, 5), EXIT], "required"),
    ],
)
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
    code = tmp_path / "code.vgpu"
    code.write_text("device.code = pass\n")
    monkeypatch.setenv("VGPU_CONFIGURATION", str(code))
    source = with_pinned(registering(tmp_path, kernel, ""))
    text = source.read_text()
    start, end = text.index("container[] = {") + len("container[] = {"), text.index("};", text.index("container[] = {"))
    image = ", ".join(map(str, cubin(kernel, [(0, 8), (8, 16)], body)))
    text = text[:start] + image + text[end:]
    source.write_text(text.replace("cuModuleLoadData(&module, &wrapper)", "cuModuleLoadData(&module, container)"))
    analysis = analysed(tmp_path, [str(build_program(source, "-l:libcuda.so.1"))], ordinary_memory)
    assert verdicts_of_wait(analysis) == [kind]
