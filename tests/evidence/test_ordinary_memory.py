"""A value that may be an address of ordinary memory ends the watch, and the report says so, unless the user rules that
out.
"""

from __future__ import annotations

import struct
from collections.abc import Callable
from pathlib import Path

import pytest

from ffm.results.documents.analysis import Analysis
from ffm.results.documents.notes import OrdinaryMemory
from ffm.results.folder.paths import ResultsFolder
from ffm.results.vocabulary import OrdinaryCause
from ffm.stages.analysis.stage import run_analysis
from ffm.stages.measure import Request
from ffm.stages.registry import MEASURING_STAGES
from tests.native.cubins import EXIT, FIRST_PARAMETER, calculate, container, cubin, load, store
from tests.planted.building import KEPT, Programs
from tests.planted.labels import PROGRAMS

PTX = """.version 8.0
.target sm_80
.address_size 64
.visible .entry KERNEL(.param .u64 first, .param .align 8 .b8 given[16])
{
    .reg .b32 %r<3>;
    .reg .b64 %rd<5>;
    ld.param.u64 %rd1, [first];
    ld.param.u32 %r1, [given+8];
    BODY
    cvta.to.global.u64 %rd2, %rd1;
    st.global.u32 [%rd2], %r1;
    ret;
}
"""

REGISTERED = """// Downloads what a kernel wrote that is given a structure. One of its members holds a stale address.
#include <cuda.h>
#include <stdlib.h>

__attribute__((section(".nv_fatbin"), used, aligned(8))) static const unsigned char container[] = {CONTAINER};
__attribute__((section(".nvFatBinSegment"), used)) static const struct {
    int magic, version;
    const void *container, *unused;
} wrapper = {0x466243b1, 1, container, nullptr};

int main()
{
    CUdevice device;
    CUcontext context;
    CUmodule module;
    CUfunction kernel;
    CUdeviceptr written;
    const size_t bytes = 1 << 20;
    void *host = malloc(bytes);
    bool done = cuInit(0) == 0 && cuDeviceGet(&device, 0) == 0 && cuDevicePrimaryCtxRetain(&context, device) == 0 &&
                cuCtxSetCurrent(context) == 0 && cuModuleLoadData(&module, &wrapper) == 0 &&
                cuModuleGetFunction(&kernel, module, "KERNEL") == 0 && cuMemAlloc(&written, bytes) == 0;
    struct {
        void *unset;
        int count;
    } given = {host, 3};
    void *parameters[] = {&written, &given};
    done = done && cuLaunchKernel(kernel, 1, 1, 1, 1, 1, 1, 0, nullptr, parameters, nullptr) == 0 &&
           cuMemcpyDtoH(host, written, bytes) == 0;
    return done ? 0 : 1;
}
"""


def registering(folder: Path, kernel: str, body: str) -> Path:
    """Write a program that registers PTX as those of nvcc do."""
    text = PTX.replace("KERNEL", kernel).replace("BODY", body).encode()
    part = struct.pack("<HHIQIIIIIIQQQ", 1, 0x101, 64, len(text), 0, 0, 0, 80, 0, 0, 0, 0, 0) + text
    container = struct.pack("<IHHQ", 0xBA55ED50, 1, 16, len(part)) + part
    source = folder / f"{kernel}.cpp"
    source.write_text(REGISTERED.replace("KERNEL", kernel).replace("CONTAINER", ", ".join(map(str, container))))
    return source


def analysed(folder: Path, command: list[str], ordinary_memory: bool = True) -> Analysis:
    results = ResultsFolder(folder / "results")
    results.root.mkdir()
    request = Request(command, results, 60.0, ordinary_memory=ordinary_memory)
    for stage in MEASURING_STAGES.values():
        stage(request)
    return run_analysis(results)


def notes_of(analysis: Analysis) -> list[OrdinaryMemory]:
    return [note for note in analysis.notes if isinstance(note, OrdinaryMemory)]


def verdicts_of_download(analysis: Analysis) -> list[str]:
    (download,) = (site for site in analysis.sites if site.function.startswith("cuMemcpyDtoH"))
    return [verdict.kind for verdict in download.synchronization]


@pytest.mark.parametrize(("ordinary_memory", "kind"), [(True, "required"), (False, "unnecessary")])
def test_a_parameter_that_may_be_an_address(tmp_path: Path, ordinary_memory: bool, kind: str) -> None:
    program = Programs(tmp_path / "programs", kept=KEPT).executable(PROGRAMS / "kernel_padding.cu")
    analysis = analysed(tmp_path, [str(program), "heap"], ordinary_memory)
    assert verdicts_of_download(analysis) == [kind]
    named = OrdinaryMemory(kernel="twice", offset=8, cause=OrdinaryCause.NO_CODE)
    assert notes_of(analysis) == ([named] if ordinary_memory else [])


@pytest.mark.parametrize(
    ("kernel", "body", "kind"),
    [
        ("_Z6unreadPi5Given", "", "unnecessary"),
        ("_Z4readPi5Given", "ld.param.u64 %rd3, [given];\n st.global.u64 [%rd1+8], %rd3;", "required"),
        ("_Z6halvesPi5Given", "ld.param.v2.u32 {%r1, %r2}, [given];", "required"),
        ("plain", "", "required"),  # another file may have another kernel of that name
    ],
)
def test_a_member_that_no_code_of_the_kernel_reads(
    build_program: Callable[..., Path], tmp_path: Path, kernel: str, body: str, kind: str
) -> None:
    program = build_program(registering(tmp_path, kernel, body), "-l:libcuda.so.1")
    analysis = analysed(tmp_path, [str(program)])
    assert verdicts_of_download(analysis) == [kind]
    assert bool(notes_of(analysis)) == (kind == "required")


POINTER, UNSET, COUNT = (
    load(FIRST_PARAMETER + place, width, to=to) for place, width, to in ((0, 8, 2), (8, 8, 6), (16, 4, 5))
)
PICKED = load(FIRST_PARAMETER, 8, index=4, to=6)
STORE, MULTIPLY_HIGH, SHIFT = store(2, 5), 0x027, 0x019


@pytest.mark.parametrize("compression", [None, "", "lz4_raw", "zstd"])
@pytest.mark.parametrize(
    ("kernel", "body", "kind"),
    [
        ("without", [POINTER, COUNT, STORE, EXIT], "unnecessary"),
        ("stores_there", [POINTER, UNSET, COUNT, STORE, store(6, 5), EXIT], "required"),
        ("stores_it", [POINTER, UNSET, COUNT, STORE, store(2, 7), EXIT], "required"),
        ("multiplies", [POINTER, UNSET, COUNT, calculate(MULTIPLY_HIGH, 5, 5, 7, 5), STORE, EXIT], "unnecessary"),
        ("shifts", [POINTER, UNSET, COUNT, calculate(SHIFT, 5, 5, 7, 5), STORE, EXIT], "unnecessary"),
        ("somewhere", [POINTER, COUNT, PICKED, store(6, 5), EXIT], "required"),
        ("factor", [POINTER, COUNT, PICKED, calculate(MULTIPLY_HIGH, 5, 5, 7, 5), STORE, EXIT], "unnecessary"),
    ],
)
def test_a_member_that_machine_code_does_not_use_as_an_address(
    build_program: Callable[..., Path],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    kernel: str,
    body: list[tuple[int, int]],
    kind: str,
    compression: str | None,
) -> None:
    """As code that is compiled while a program runs, or of a library without PTX: nothing in the program's file
    describes it.
    """
    code = tmp_path / "code.vgpu"
    code.write_text("device.code = pass\n")
    monkeypatch.setenv("VGPU_CONFIGURATION", str(code))
    image = cubin(kernel, [(0, 8), (8, 16)], body)
    if compression is not None:
        image = container([(90, image, compression)])
    text = ", ".join(map(str, image))
    source = tmp_path / f"{kernel}.cpp"
    source.write_text(
        REGISTERED.replace("KERNEL", kernel)
        .replace("CONTAINER", text)
        .replace("cuModuleLoadData(&module, &wrapper)", "cuModuleLoadData(&module, container)")
    )
    analysis = analysed(tmp_path, [str(build_program(source, "-l:libcuda.so.1"))])
    assert verdicts_of_download(analysis) == [kind]
    named = OrdinaryMemory(kernel=kernel, offset=8, cause=OrdinaryCause.USES)
    assert notes_of(analysis) == ([named] if kind == "required" else [])
