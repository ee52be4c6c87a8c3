"""Where a stack makes its CUDA call."""

from __future__ import annotations

import pytest

from ffm.results.call_sites import CallPlace, own_frame, place_of_call, python_package, runtime_modules, source_file
from ffm.results.documents.stacks import Frame, Module


def frames(*functions: tuple[str, int]) -> list[Frame]:
    """Innermost first: function and line, line 0 for a library without debug information (module 1)."""
    return [
        Frame(module=0 if line else 1, offset=index, function=name, file="a.cu" if line else "", line=line)
        for index, (name, line) in enumerate(functions)
    ]


@pytest.mark.parametrize(
    ("stack", "function", "place"),
    [
        # The runtime: the programmer wrote its outermost frame.
        ([("cudart::apiFree(void*)", 0), ("cudaFree", 0), ("solve", 9), ("main", 3)], "cuMemFree_v2",
         CallPlace("cudaFree", "solve", "a.cu", 9)),
        # A macro of the runtime's headers appends what the programmer did not write.
        ([("cudaMemcpy_ptds", 0), ("solve", 9)], "cuMemcpyHtoD_v2_ptds", CallPlace("cudaMemcpy", "solve", "a.cu", 9)),
        ([("cudaStreamGetCaptureInfo_v3_ptsz", 0), ("solve", 9)], "cuStreamGetCaptureInfo_v3_ptsz",
         CallPlace("cudaStreamGetCaptureInfo", "solve", "a.cu", 9)),
        ([("cudaGetDeviceProperties_v2", 0), ("solve", 9)], "cuDeviceGetAttribute",
         CallPlace("cudaGetDeviceProperties", "solve", "a.cu", 9)),
        # A runtime call that reaches another one on its way.
        ([("cudaMalloc", 0), ("cudaGetLastError", 0), ("main", 3)], "cuMemAlloc_v2",
         CallPlace("cudaGetLastError", "main", "a.cu", 3)),
        # The driver called directly: the stack has no frame of it.
        ([("solve", 9), ("main", 3)], "cuMemFree_v2", CallPlace("cuMemFree_v2", "solve", "a.cu", 9)),
        # A library that calls the driver: the nearest known line is the user's.
        ([("helper", 0), ("cufftExecC2C", 0), ("solve", 9)], "cuStreamSynchronize",
         CallPlace("cuStreamSynchronize", "solve", "a.cu", 9)),
        # A library that waits privately: the programmer wrote its entry.
        ([("helper", 0), ("cublasSasum_v2", 0), ("solve", 9), ("main", 3)], "private",
         CallPlace("cublasSasum_v2", "solve", "a.cu", 9)),
        # Only addresses are known.
        ([("", 0)], "private", CallPlace("private", "", "", 0)),
        ([], "cuMemFree_v2", CallPlace("cuMemFree_v2", "", "", 0)),
        # A stripped program, on a machine that knows the lines of its C library.
        ([("", 0), ("", 0), ("__libc_start_call_main", 58), ("_start", 0)], "cuMemFree_v2",
         CallPlace("cuMemFree_v2", "", "", 0)),
        # There is only the call.
        ([("cudaFree", 0)], "cuMemFree_v2", CallPlace("cudaFree", "cudaFree", "", 0)),
    ],
)  # fmt: skip
def test_place_of_call(stack: list[tuple[str, int]], function: str, place: CallPlace) -> None:
    assert place_of_call(frames(*stack), function) == place


HEADER = "/usr/local/cuda-13.0/targets/x86_64-linux/include/cuda_runtime.h"
STUB = "/tmp/tmpxft_00004515_00000000-6_heat.cudafe1.stub.c"
RUNTIME = Frame(module=0, offset=0, function="")
"""In a runtime that is linked statically."""


def source(function: str, file: str, line: int) -> Frame:
    return Frame(module=0, offset=0, function=function, file=file, line=line)


CGO = [
    source("_cgo_e2021cb0c937_Cfunc_step", "cgo-gcc-prolog", 71),
    source("runtime.asmcgocall.abi0", "/usr/lib/go-1.19/src/runtime/asm_amd64.s", 844),
    source("runtime.cgocall", "/usr/lib/go-1.19/src/runtime/cgocall.go", 158),
    source("main._Cfunc_step", "_cgo_gotypes.go", 120),
]
"""The way from Go to C, innermost first."""


@pytest.mark.parametrize(
    ("stack", "function", "place"),
    [
        # A template of CUDA's header around a function of the runtime.
        ([RUNTIME, source("cudaMalloc", "", 0), source("cudaMalloc<float>", HEADER, 879), source("main", "h.cu", 19)],
         "cuMemAlloc_v2", CallPlace("cudaMalloc", "main", "h.cu", 19)),
        # The same in a runtime without names.
        ([RUNTIME, source("cudaMalloc<float>", HEADER, 879), source("main", "h.cu", 19)],
         "cuMemAlloc_v2", CallPlace("cudaMalloc", "main", "h.cu", 19)),
        # A launch, through what nvcc generates: two functions for each kernel.
        ([RUNTIME, source("cudaLaunchKernel", "", 0),
          source("__cudaLaunchKernel_helper", HEADER.replace("cuda_runtime", "crt/device_functions"), 2963),
          source("__device_stub__Z4stepPKfi(float const*, int)", STUB, 14),
          source("step(float const*, int)", "h.cu", 5),
          source("main", "h.cu", 26)],
         "cuLaunchKernel", CallPlace("cudaLaunchKernel", "main", "h.cu", 26)),
        # Its first time, when the runtime loads the code. The kernel is a template.
        ([RUNTIME, source("__cudaGetKernel", "", 0), source("__device_stub__ZN1a4stepIfEEvPT_(float*)", STUB, 14),
          source("void a::step<float>(float*)", "h.cu", 5), source("solve", "h.cu", 26)],
         "cuLibraryLoadData", CallPlace("cuLibraryLoadData", "solve", "h.cu", 26)),
        # The host function was inlined away.
        ([RUNTIME, source("cudaLaunchKernel", "", 0), source("__device_stub__Z4stepPKfi", STUB, 14),
          source("main", "h.cu", 26)],
         "cuLaunchKernel", CallPlace("cudaLaunchKernel", "main", "h.cu", 26)),
        # A function of the program with such a name.
        ([RUNTIME, source("cudaFree", "", 0), source("cudaRelease<float>", "h.cu", 7), source("main", "h.cu", 19)],
         "cuMemFree_v2", CallPlace("cudaFree", "cudaRelease<float>", "h.cu", 7)),
        # Go calls C: the driver, and a function of the program's own.
        ([*CGO, source("main.step", "/home/user/main.go", 52)],
         "cuCtxSynchronize", CallPlace("cuCtxSynchronize", "main.step", "/home/user/main.go", 52)),
        ([source("launch", "/home/user/main.go", 16), *CGO, source("main.step", "/home/user/main.go", 52)],
         "cuLaunchKernel", CallPlace("cuLaunchKernel", "launch", "/home/user/main.go", 16)),
    ],
)  # fmt: skip
def test_the_program_s_line_is_outside_of_cuda_s_headers_and_generated_code(
    stack: list[Frame], function: str, place: CallPlace
) -> None:
    assert place_of_call(stack, function) == place


def python(function: str, file: str, line: int) -> Frame:
    return Frame(module=2, offset=0, function=function, file=file, line=line, python=True)


LIBRARY = "/usr/lib/python3.12/site-packages/tensor/core.py"


@pytest.mark.parametrize(
    ("stack", "function", "place"),
    [
        # The binding is Cython's; the line is the program's.
        ([*frames(("cuda.bindings.driver.cuMemFree", 0)), python("step", "train.py", 42)], "cuMemFree_v2",
         CallPlace("cuMemFree_v2", "step", "train.py", 42)),
        # Through an installed library, whose lines are known too.
        ([python("free", LIBRARY, 7), python("<lambda>", "<frozen runpy>", 3), python("step", "train.py", 42)],
         "cuMemFree_v2", CallPlace("cuMemFree_v2", "step", "train.py", 42)),
        # There is only a library.
        ([*frames(("helper", 0)), python("free", LIBRARY, 7), python("main", LIBRARY, 9)], "cuMemFree_v2",
         CallPlace("cuMemFree_v2", "free", LIBRARY, 7)),
        # Native code of the program, called from Python.
        ([*frames(("solve", 9)), python("step", "train.py", 42)], "cuMemFree_v2",
         CallPlace("cuMemFree_v2", "solve", "a.cu", 9)),
        # The runtime, called by a library.
        ([*frames(("cudaFree", 0), ("release", 0)), python("step", "train.py", 42)], "cuMemFree_v2",
         CallPlace("cudaFree", "step", "train.py", 42)),
        # A Python function is not a CUDA call, whatever its name.
        ([python("cudaFree", "train.py", 1), python("step", "train.py", 42)], "cuMemFree_v2",
         CallPlace("cuMemFree_v2", "cudaFree", "train.py", 1)),
        # A library that waits privately.
        ([*frames(("helper", 0), ("cublasSasum_v2", 0)), python("step", "train.py", 42)], "private",
         CallPlace("cublasSasum_v2", "step", "train.py", 42)),
        # Python's own threads, on a machine that knows the lines of its C library.
        ([python("run", LIBRARY, 9), *frames(("start_thread", 447))], "cuMemFree_v2",
         CallPlace("cuMemFree_v2", "run", LIBRARY, 9)),
        # Code that a library generates, and a script that is given as text.
        ([python("match", "<string>", 3), python("step", "train.py", 42)], "cuMemFree_v2",
         CallPlace("cuMemFree_v2", "step", "train.py", 42)),
        ([python("step", "<string>", 3), python("<module>", "<string>", 5)], "cuMemFree_v2",
         CallPlace("cuMemFree_v2", "step", "<string>", 3)),
        # What the interpreter releases as it ends, where its own lines are known.
        (frames(("release", 0), ("subtype_dealloc", 1463), ("Py_FinalizeEx", 1833), ("main", 15)), "cuMemFree_v2",
         CallPlace("cuMemFree_v2", "Py_FinalizeEx", "a.cu", 1833)),
    ],
)  # fmt: skip
def test_place_of_a_call_in_python(stack: list[Frame], function: str, place: CallPlace) -> None:
    assert place_of_call(stack, function) == place


def test_no_call_of_the_programmer_lies_in_the_runtime_or_in_a_library_of_python() -> None:
    paths = ["/app/train.so", "/usr/lib/libcuda.so.1", f"{LIBRARY}/_core.so", "/usr/lib64/python3/lib-dynload/x.so"]
    native = [Module(path=path, build_id="") for path in paths]
    assert runtime_modules([*native, Module(path="/usr/bin/python3.11", build_id="")]) == {1, 2, 3}
    assert runtime_modules(native) == {1}  # a program that happens to be installed there


def test_what_starts_a_thread_of_a_library_makes_no_call() -> None:
    """The runtime of C++ starts it by a function without a name."""
    paths = ["/usr/bin/python3.11", f"{LIBRARY}/_core.so", "/usr/lib/libstdc++.so.6", "/usr/lib/libc.so.6"]
    runtime = runtime_modules([Module(path=path, build_id="") for path in paths])
    called = [Frame(module=1, offset=1, function="cudaMemcpyAsync"), Frame(module=1, offset=2, function="runLoop")]
    starts = [Frame(module=2, offset=3), Frame(module=3, offset=4, function="start_thread", file="nptl.c", line=442)]
    assert place_of_call([*called, *starts], "cuMemcpyAsync", runtime).caller == "runLoop"


def test_source_behind_nvcc_s_temporary_file() -> None:
    assert source_file("/var/tmp/tmpxft_0002152b_00000000-5_als.cudafe1.cpp") == "als.cu"
    assert source_file("/tmp/tmpxft_00000001_00000000-6_my_file.compute_80.cudafe1.cpp") == "my_file.cu"
    assert source_file("/home/user/als.cu") == "/home/user/als.cu"
    assert source_file("") == ""


TOOLKIT = "/opt/cuda-13.0/bin/../targets/x86_64-linux/include"
MODULES = [
    Module(path="/home/user/solve", build_id=""),
    Module(path="/opt/cuda-13.0/targets/x86_64-linux/lib/libcufft.so.12", build_id=""),
    Module(path="/usr/lib/x86_64-linux-gnu/libc.so.6", build_id=""),
    Module(path="/home/user/libmine.so", build_id=""),
    Module(path="/usr/bin/python3.12", build_id=""),
]


def at(file: str, line: int, module: int = 0, function: str = "f") -> Frame:
    return Frame(module=module, offset=0, function=function, file=file, line=line)


@pytest.mark.parametrize(
    "foreign",
    [
        at(f"{TOOLKIT}/cuda_runtime.h", 1038),
        at(f"{TOOLKIT}/cccl/thrust/detail/copy.h", 9),
        at("/home/user/env/include/cub/util_allocator.cuh", 9),
        at("/spack/cuda-12/include/cuda_runtime_api.h", 9),
        at("/usr/local/cuda/include/cufft.h", 9),
        at("/opt/gcc/include/c++/13/bits/unique_ptr.h", 9),
        at("/tmp/tmpxft_0002152b_00000000-5_als.cudafe1.stub.c", 9),
        at("nvcc_internal_extended_lambda_implementation", 546),
        at("cgo-gcc-prolog", 71),
        at("/home/user/go/pkg/mod/golang.org/toolchain@v0.0.1-go1.22.1.linux-amd64/src/runtime/cgocall.go", 158),
        at("/home/user/solve.cu", 9, function="void thrust::NS::detail::contiguous_storage<int>::deallocate()"),
        at("/home/user/solve.cu", 9, function="std::shared_ptr<mine::Vector>::~shared_ptr()"),
        at("fft.cpp", 9, module=1),
        at("./stdlib/qsort.c", 9, module=2),
        at("Objects/call.c", 9, module=4),
        at("", 9),
        at("solve.cu", 0),
        at("../csu/libc-start.c", 9, function="__libc_start_main"),
        python("free", LIBRARY, 7),
    ],
)
@pytest.mark.parametrize(
    "own",
    [
        at("/home/user/solve.cu", 5),
        at("/home/user/include/cuda/helper.cuh", 5),
        at("/home/user/cuda/include/helper.cuh", 5),
        at("/usr/local/cuda/samples/fft.cu", 5),
        at("mine.cpp", 5, module=3),
        at("/home/user/runtime/main.go", 5),
        at("/home/user/solve.cu", 5, function="void mine::copy<thrust::device_vector<int> >(int)"),
        python("step", "train.py", 42),
    ],
)
def test_the_program_s_own_line_is_the_innermost_outside_of_libraries_and_their_headers(
    foreign: Frame, own: Frame
) -> None:
    outer = at("/home/user/main.cu", 77)
    assert own_frame([at("", 0, 1), foreign, own, outer], MODULES) is own
    assert own_frame([foreign], MODULES) is None


@pytest.mark.parametrize(
    ("file", "package"),
    [
        ("/env/lib/python3.11/site-packages/numba_cuda/numba/cuda/lowering.py", "numba_cuda"),
        ("/usr/lib/python3/dist-packages/six.py", "six"),
        ("/opt/python/lib/python3.11/ctypes/__init__.py", "ctypes"),
        ("/usr/lib/python3.11/abc.py", "abc"),
        ("<frozen importlib._bootstrap>", ""),
        ("/home/me/train.py", ""),
        ("", ""),
    ],
)
def test_a_package_of_python_is_known_by_its_folder(file: str, package: str) -> None:
    assert python_package(file) == package
