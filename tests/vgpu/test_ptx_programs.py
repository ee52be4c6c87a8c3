"""Whole modules: variables, printing, faults of kernels, and what is not implemented."""

from __future__ import annotations

import ctypes
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from cuda.bindings import driver

from tests.vgpu.cubins import container
from tests.vgpu.ptx import HEAD, Program, Status, download, kernel, quick_gpu, upload
from tests.vgpu.virtual_gpu import checked, load

VARIABLES = """
.global .align 4 .u32 counter = 5;
.const .align 4 .f32 weights[4] = {0f3F800000, 0f40000000, 0f40400000, 0f40800000};
.global .align 8 .u64 table[2] = {counter, generic(counter)};
"""


@pytest.mark.virtual_gpu
def test_variables_have_their_first_values_and_the_host_reaches_them() -> None:
    with quick_gpu():
        body = """
            ld.const.f32 %f1, [weights+8]; cvt.rzi.u32.f32 %r1, %f1;
            ld.global.u64 %w1, [table]; ld.u64 %w2, [table+8]; ld.global.u32 %r2, [%w1]; atom.add.u32 %r3, [%w2], %r1;
            add.u32 %r2, %r2, %r1; st.global.u32 [%a0], %r2;
        """
        program = Program(VARIABLES + kernel("k", 1, body))
        counter, size = checked(driver.cuModuleGetGlobal(program.module, b"counter"))
        assert size == 4
        words = np.zeros(1, np.uint32)
        assert download(counter, words).tolist() == [5]
        address = upload(words)
        assert program.launch("k", 1, 1, address) == Status.CUDA_SUCCESS
        assert (download(address, words)[0], download(counter, words)[0]) == (8, 8)


@pytest.mark.virtual_gpu
def test_host_and_kernels_share_managed_variables() -> None:
    with quick_gpu():
        text = ".visible .global .attribute(.managed) .align 4 .u32 shared_word = 5;\n" + kernel(
            "k", 0, "ld.global.u32 %r1, [shared_word]; add.u32 %r1, %r1, 1; st.global.u32 [shared_word], %r1;"
        )
        library = checked(driver.cuLibraryLoadData((HEAD + text).encode(), [], [], 0, [], [], 0))
        address, size = checked(driver.cuLibraryGetManaged(library, b"shared_word"))
        word = ctypes.c_uint32.from_address(int(address))
        assert (size, word.value) == (4, 5)
        word.value = 40
        function = checked(driver.cuKernelGetFunction(checked(driver.cuLibraryGetKernel(library, b"k"))))
        checked(driver.cuLaunchKernel(function, 1, 1, 1, 1, 1, 1, 0, 0, 0, 0))
        checked(driver.cuCtxSynchronize())
        assert word.value == 41


CALLED = ".visible .func (.param .b32 out) twice(.param .b32 in)"


def linked(*texts: str) -> driver.CUmodule:
    """Link modules of PTX into one, and load it."""
    state = checked(driver.cuLinkCreate(0, [], []))
    for text in texts:
        data = (HEAD + text).encode() + b"\0"
        checked(driver.cuLinkAddData(state, driver.CUjitInputType.CU_JIT_INPUT_PTX, data, len(data), b"x", 0, [], []))
    image, _size = checked(driver.cuLinkComplete(state))
    module = checked(driver.cuModuleLoadData(image))
    checked(driver.cuLinkDestroy(state))
    return module


@pytest.mark.virtual_gpu
def test_linked_modules_share_functions_and_variables() -> None:
    with quick_gpu():
        callee = (
            ".visible .global .u32 factor = 2;\n"
            + CALLED
            + " { .reg .b32 %r<3>; ld.param.b32 %r1, [in]; ld.global.u32 %r2, [factor]; mul.lo.u32 %r1, %r1, %r2; "
            "st.param.b32 [out], %r1; ret; }\n"
        )
        caller = (
            f".extern .global .u32 factor;\n.extern {CALLED.removeprefix('.visible ')};\n"
            + kernel(
                "k", 1, "{ .param .b32 given; .param .b32 got; ld.global.u32 %r1, [factor]; st.param.b32 [given], %r1; "
                "call.uni (got), twice, (given); ld.param.b32 %r1, [got]; st.global.u32 [%a0], %r1; }"
            )
        )  # fmt: skip
        word = np.zeros(1, np.uint32)
        address = upload(word)
        program = Program.__new__(Program)
        program.module = linked(caller, callee)
        assert program.launch("k", 1, 1, address) == 0
        assert download(address, word)[0] == 4


@pytest.mark.virtual_gpu
@pytest.mark.parametrize("call", ["load", "link"])
def test_what_the_compiler_logs_is_an_empty_text(call: str) -> None:
    option = driver.CUjit_option
    options = (ctypes.c_int * 3)(
        option.CU_JIT_INFO_LOG_BUFFER_SIZE_BYTES, option.CU_JIT_INFO_LOG_BUFFER, option.CU_JIT_ERROR_LOG_BUFFER
    )
    told, unsized = ctypes.create_string_buffer(b"old"), ctypes.create_string_buffer(b"old")
    values = (ctypes.c_void_p * 3)(4, ctypes.addressof(told), ctypes.addressof(unsized))
    made = ctypes.c_void_p()
    with quick_gpu():
        library = load()
        if call == "load":
            image = (HEAD + kernel("k", 0, "")).encode() + b"\0"
            assert library.cuModuleLoadDataEx(ctypes.byref(made), image, 3, options, values) == 0
        else:
            assert library.cuLinkCreate_v2(3, options, values, ctypes.byref(made)) == 0
    assert told.raw[0] == 0 and not values[0]
    assert unsized.value == b"old"  # nothing says that a byte of it may be written


NEWER = b"""
.version 8.7
.target sm_120
.address_size 64
.visible .entry k(.param .u64 k_0) {
    .reg .b64 %w<2>;
    ld.param.u64 %w0, [k_0];
    st.global.u32 [%w0], 120;
    ret;
}
"""
PTX_CODE, MACHINE_CODE = 1, 2


@pytest.mark.virtual_gpu
def test_ptx_for_a_newer_gpu_stands_in_for_machine_code_and_the_kernel_says_so() -> None:
    """Of CUB's kernels in CuPy, there is machine code for each GPU, and PTX for the newest one only."""
    newer = (PTX_CODE, 120, 0, NEWER, 0)
    with quick_gpu():
        program = Program.__new__(Program)
        program.module = checked(driver.cuModuleLoadData(container((MACHINE_CODE, 90, 0, b"?", 0), newer)))
        function = checked(driver.cuModuleGetFunction(program.module, b"k"))
        version = driver.CUfunction_attribute.CU_FUNC_ATTRIBUTE_PTX_VERSION
        assert checked(driver.cuFuncGetAttribute(version, function)) == 120
        word = np.zeros(1, np.uint32)
        address = upload(word)
        assert program.launch("k", 1, 1, address) == Status.CUDA_SUCCESS
        assert download(address, word)[0] == 120
        assert driver.cuModuleLoadData(container(newer))[0] == Status.CUDA_ERROR_NO_BINARY_FOR_GPU


FAULTS = {
    "st.global.u32 [16], 1;": Status.CUDA_ERROR_ILLEGAL_ADDRESS,
    "shl.b64 %w1, %a0, 8; ld.global.u32 %r1, [%w1]; st.global.u32 [%a0], %r1;": Status.CUDA_ERROR_ILLEGAL_ADDRESS,
    "ld.global.u32 %r1, [%a0+2]; st.global.u32 [%a0], %r1;": Status.CUDA_ERROR_MISALIGNED_ADDRESS,
    ".shared .u32 word; st.shared.u32 [word+8192], 1;": Status.CUDA_ERROR_ILLEGAL_ADDRESS,
    "trap;": Status.CUDA_ERROR_LAUNCH_FAILED,
    "again: bra again;": Status.CUDA_ERROR_LAUNCH_TIMEOUT,
    "mov.u32 %r0, %tid.x; setp.eq.u32 %p, %r0, 0; @%p bar.sync 1; @!%p bar.sync 2;": Status.CUDA_ERROR_LAUNCH_TIMEOUT,
}


@pytest.mark.virtual_gpu(fresh=True)
@pytest.mark.parametrize("body", FAULTS)
def test_a_kernel_that_faults_ends_and_the_process_lives_on(body: str) -> None:
    with quick_gpu("device.time_limit = 1\ndevice.pageable_memory_access = 0\n"):
        address = upload(np.zeros(16, np.uint32))
        program = Program(kernel("k", 1, body))
        assert program.launch("k", 4, 64, address) == FAULTS[body]
        assert driver.cuMemAlloc(4)[0] == FAULTS[body]  # the context stays in error


@pytest.mark.virtual_gpu(fresh=True)
def test_the_time_limit_is_of_the_processor_and_not_of_the_clock() -> None:
    counting = "again: atom.global.add.u32 %r1, [%a0], 1; setp.lt.u32 %p, %r1, 10000000; @%p bra again;"
    with quick_gpu("device.time_limit = 1\n"):
        address = upload(np.zeros(1, np.uint32))
        program = Program(kernel("k", 1, counting) + kernel("nothing", 1, ""))
        assert program.launch("nothing", 1, 1, address) == Status.CUDA_SUCCESS
        pause = f"sleep 0.02; kill -STOP {os.getpid()}; sleep 1.2; kill -CONT {os.getpid()}"
        with subprocess.Popen(["sh", "-c", pause]):
            assert program.launch("k", 1, 1, address) == Status.CUDA_SUCCESS


ABSENT = (
    "wgmma.fence.sync.aligned;",
    "mma.sync.aligned.m8n8k4.row.col.f64.f64.f64.f64 {%d1}, {%d2}, {%d3}, {%d4};",
    "wmma.load.a.sync.aligned.row.m16n16k16.global.f16 {%r1, %r2, %r3, %r4, %r5, %r6, %r7, %r8}, [%a1], %r9;",
    "ldmatrix.sync.aligned.m8n8.x1.shared.b16 {%r1}, [%r2];",
    "cvt.rna.tf32.f32 %r1, %f1;",
    "cp.async.bulk.prefetch.tensor.1d.L2.global [%a1, {%r1}];",
    "tld4.r.2d.v4.f32.f32 {%f1, %f2, %f3, %f4}, [%a1, {%f5, %f6}];",
)


@pytest.mark.virtual_gpu
@pytest.mark.parametrize("absent", ABSENT)
def test_an_instruction_that_is_not_there_fails_the_launch_of_its_kernel_alone(absent: str) -> None:
    with quick_gpu():
        program = Program(kernel("good", 0, "") + kernel("bad", 0, absent))
        assert program.launch("good", 1, 1) == Status.CUDA_SUCCESS
        assert program.launch("bad", 1, 1) == Status.CUDA_ERROR_NOT_SUPPORTED
        assert program.launch("good", 1, 1) == Status.CUDA_SUCCESS


PRINTING = (
    HEAD
    + """
.global .align 1 .b8 format[14] = {37, 100, 32, 37, 53, 46, 50, 102, 32, 37, 115, 33, 10, 0};
.global .align 1 .b8 word[3] = {104, 105, 0};
.extern .func (.param .b32 count) vprintf (.param .b64 format, .param .b64 arguments);
.visible .entry k()
{
    .local .align 8 .b8 kept[24]; .reg .b64 %w<4>; .reg .b32 %r<3>;
    mov.u32 %r1, %tid.x; mov.u64 %w1, kept; cvta.local.u64 %w2, %w1;
    st.local.u32 [kept], %r1; st.local.f64 [kept+8], 0d3FF8000000000000; mov.u64 %w3, word; st.local.u64 [kept+16], %w3;
    mov.u64 %w1, format;
    { .param .b64 p0; .param .b64 p1; .param .b32 q0; st.param.b64 [p0], %w1; st.param.b64 [p1], %w2;
      call.uni (q0), vprintf, (p0, p1); ld.param.b32 %r2, [q0]; }
    ret;
}
"""
)
LAUNCHES = """
import sys
from tests.vgpu.ptx import Program, quick_gpu
with quick_gpu():
    print("before")
    sys.stdout.flush()
    program = Program(sys.argv[1])
    for name in sys.argv[2:]:
        print(program.launch(name, 1, 2).value)
"""


def launch_apart(text: str, *names: str, **changed: str) -> subprocess.CompletedProcess[str]:
    """Load, and launch the kernels (`k` by default) in a process of its own."""
    environment = {**os.environ, "PYTHONPATH": str(Path(__file__).parents[2]), **changed}
    return subprocess.run(
        [sys.executable, "-c", LAUNCHES, text.removeprefix(HEAD), *(names or ["k"])],
        capture_output=True,
        text=True,
        check=False,
        env=environment,
    )


def test_instructions_that_are_not_there_are_named() -> None:
    kernels = {f"k{place}": kernel(f"k{place}", 0, body) for place, body in enumerate(ABSENT)}
    told = launch_apart("".join(kernels.values()), *kernels).stderr.splitlines()
    assert len(told) == len(ABSENT)
    for line, name, body in zip(told, kernels, ABSENT, strict=True):
        assert f"kernel {name} " in line
        assert f"'{body.split()[0].rstrip(';')}' is not implemented" in line


def test_kernels_print_to_the_programs_output() -> None:
    assert launch_apart(PRINTING).stdout == "before\n0  1.50 hi!\n1  1.50 hi!\n0\n"


def test_without_a_compiler_the_load_says_so() -> None:
    ended = launch_apart(PRINTING, VGPU_LLVM="/nowhere/libllvmlite.so")
    assert "CUDA_ERROR_JIT_COMPILER_NOT_FOUND" in ended.stderr
    assert "device code needs LLVM" in ended.stderr
    assert "VGPU_LLVM" in ended.stderr


@pytest.mark.parametrize(
    "statement",
    [
        "wgmma.fence.sync.aligned",
        "tex.2dms.v4.f32.s32 {%f1, %f2, %f3, %f4}, [%w1, {%r1, %r2, %r3, %r3}]",
        "tex.level.2d.v4.f32.f32 {%f1, %f2, %f3, %f4}, [%w1, {%f1, %f2}], %f3",
        "tex.grad.2d.v4.f32.f32 {%f1, %f2, %f3, %f4}, [%w1, {%f1, %f2}], {%f1, %f2}, {%f1, %f2}",
        "tld4.r.2d.v4.f32.f32 {%f1, %f2, %f3, %f4}, [%w1, {%f1, %f2}]",
        ".unheard_of .b32 x",
    ],
)
def test_the_message_names_kernel_and_instruction(statement: str) -> None:
    ended = launch_apart(kernel("k", 0, f"{statement};"))
    assert ended.stdout == "before\n801\n"
    assert "kernel k cannot run" in ended.stderr
    assert statement.split()[0] in ended.stderr


def test_advice_to_the_compiler_changes_nothing() -> None:
    ended = launch_apart(kernel("k", 0, '.pragma "nounroll";'))
    assert ended.stdout == "before\n0\n"
    assert ended.stderr == ""


def test_compiled_kernels_are_kept_in_a_folder_of_the_users_own(tmp_path: Path) -> None:
    folder, configuration = tmp_path / "kept", tmp_path / "kept.vgpu"
    configuration.write_text(f"device.cache = {folder}\n")
    for _ in range(2):
        ended = launch_apart(PRINTING, VGPU_CONFIGURATION=str(configuration))
        assert ended.stdout.endswith("hi!\n0\n")
        assert len(list(folder.iterdir())) == 1
    assert folder.stat().st_mode & 0o777 == 0o700
    (kept,) = folder.iterdir()
    kept.write_bytes(kept.read_bytes()[:-100] + bytes(100))  # damaged: compiled anew
    assert launch_apart(PRINTING, VGPU_CONFIGURATION=str(configuration)).stdout.endswith("hi!\n0\n")
    folder.chmod(0o777)  # anyone could put code there: not used
    kept.unlink()
    assert launch_apart(PRINTING, VGPU_CONFIGURATION=str(configuration)).stdout.endswith("hi!\n0\n")
    assert not list(folder.iterdir())


ADDRESSED = (
    """
.func (.param .b32 result) twice (.param .b32 given) { .reg .b32 %r<2>; ld.param.u32 %r1, [given];
    add.u32 %r1, %r1, %r1; st.param.b32 [result], %r1; ret; }
.func (.param .b32 result) square (.param .b32 given) { .reg .b32 %r<2>; ld.param.u32 %r1, [given];
    mul.lo.u32 %r1, %r1, %r1; st.param.b32 [result], %r1; ret; }
.global .align 8 .u64 table[2] = {twice, square};
"""
    + kernel("keep", 1, "mov.u64 %w0, square; st.global.u64 [%a0], %w0;")
    + kernel(
        "use",
        3,
        """
        mov.u32 %r0, %tid.x; and.b32 %r1, %r0, 1;
        mov.u64 %w0, table; mad.wide.u32 %w1, %r1, 8, %w0; ld.global.u64 %w2, [%w1]; ld.global.u64 %w3, [%a0];
        { .param .b32 given; .param .b32 result; st.param.b32 [given], %r0;
        one: .callprototype (.param .b32 _) _ (.param .b32 _);
        call (result), %w2, (given), one; ld.param.b32 %r2, [result];
        call (result), %w3, (given), one; ld.param.b32 %r3, [result]; }
        mad.wide.u32 %w4, %r0, 4, %a1; add.u32 %r2, %r2, %r3; st.global.u32 [%w4], %r2;
        """,
    )
)


@pytest.mark.virtual_gpu
def test_functions_are_called_by_addresses_that_variables_and_other_kernels_hold() -> None:
    with quick_gpu():
        kept, results = upload(np.zeros(1, np.uint64)), upload(np.zeros(32, np.uint32))
        program = Program(ADDRESSED)
        assert program.launch("keep", 1, 1, kept) == Status.CUDA_SUCCESS
        assert program.launch("use", 1, 32, kept, results, 0) == Status.CUDA_SUCCESS
        given = np.arange(32, dtype=np.uint32)
        expected = np.where(given % 2 == 0, 2 * given, given * given) + given * given
        np.testing.assert_array_equal(download(results, given), expected)


@pytest.mark.virtual_gpu(fresh=True)
def test_an_address_without_a_function_cannot_be_called() -> None:
    with quick_gpu():
        kept = upload(np.zeros(32, np.uint64))
        assert Program(ADDRESSED).launch("use", 1, 1, kept, kept, 0) != Status.CUDA_SUCCESS
        assert driver.cuMemAlloc(4)[0] != Status.CUDA_SUCCESS
