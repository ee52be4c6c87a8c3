"""Programs that give a kernel a structure, one member of which holds a stale address of host memory."""

from __future__ import annotations

import struct
from pathlib import Path

import pytest

from ffm.results.documents.analysis import Analysis
from ffm.results.folder.paths import ResultsFolder
from ffm.stages.analysis.stage import run_analysis
from ffm.stages.measure import Request
from ffm.stages.registry import MEASURING_STAGES
from tests.native.cubins import EXIT, FIRST_PARAMETER, load, store

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

POINTER, UNSET, COUNT = (
    load(FIRST_PARAMETER + place, width, to=to) for place, width, to in ((0, 8, 2), (8, 8, 6), (16, 4, 5))
)
"""Instructions that load the first parameter and the structure's members, the second of which is the stale address."""
STORE = store(2, 5)

PTX_CASES = [
    ("_Z6unreadPi5Given", "", "unnecessary"),
    ("_Z4readPi5Given", "ld.param.u64 %rd3, [given];\n st.global.u64 [%rd1+8], %rd3;", "required"),
    ("plain", "", "required"),  # another file may have another kernel of that name
]
"""A kernel, what it does beyond storing the count, and the verdict on the wait for it."""
MACHINE_CODE_CASES = [
    ("without", [POINTER, COUNT, STORE, EXIT], "unnecessary"),
    ("stores_there", [POINTER, UNSET, COUNT, STORE, store(6, 5), EXIT], "required"),
]
"""A kernel, its instructions, and the verdict on the wait for it."""


def registering(folder: Path, kernel: str, body: str) -> Path:
    """Write a program that registers PTX as those of nvcc do."""
    text = PTX.replace("KERNEL", kernel).replace("BODY", body).encode()
    part = struct.pack("<HHIQIIIIIIQQQ", 1, 0x101, 64, len(text), 0, 0, 0, 80, 0, 0, 0, 0, 0) + text
    return _written(folder, kernel, struct.pack("<IHHQ", 0xBA55ED50, 1, 16, len(part)) + part)


def loading(folder: Path, kernel: str, image: bytes) -> Path:
    """Write a program that loads machine code, of which nothing in the program's file tells the parameters."""
    source = _written(folder, kernel, image)
    text = source.read_text()
    source.write_text(text.replace("cuModuleLoadData(&module, &wrapper)", "cuModuleLoadData(&module, container)"))
    return source


def _written(folder: Path, kernel: str, image: bytes) -> Path:
    source = folder / f"{kernel}.cpp"
    source.write_text(REGISTERED.replace("KERNEL", kernel).replace("CONTAINER", ", ".join(map(str, image))))
    return source


def accept_machine_code(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Have the virtual GPU accept machine code, whose kernels then do nothing."""
    configuration = folder / "code.vgpu"
    configuration.write_text("device.code = pass\n")
    monkeypatch.setenv("VGPU_CONFIGURATION", str(configuration))


def analysed(folder: Path, command: list[str], ordinary_memory: bool = True) -> Analysis:
    """Measure a program with all stages, below the folder."""
    results = ResultsFolder(folder / "results")
    results.root.mkdir()
    request = Request(command, results, 60.0, ordinary_memory=ordinary_memory)
    for stage in MEASURING_STAGES.values():
        stage(request)
    return run_analysis(results)
