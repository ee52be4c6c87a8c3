"""The driver's file: shaped like NVIDIA's, so that tools encounter the same structure."""

from __future__ import annotations

import ctypes
import subprocess
import sys

import capstone
import pytest
from elftools.elf.elffile import ELFFile

from ffm.vgpu.paths import library_folder
from tests.vgpu.virtual_gpu import load

LEGACY, PER_THREAD = 1, 2
SUCCESS, SYMBOL_NOT_FOUND, VERSION_NOT_SUFFICIENT = 0, 1, 2
NOT_FOUND, NOT_SUPPORTED = 500, 801


def driver_file() -> ELFFile:
    return ELFFile((library_folder() / "libcuda.so.1").open("rb"))


def exports(file: ELFFile) -> dict[str, int]:
    symbols = file.get_section_by_name(".dynsym").iter_symbols()
    return {symbol.name: symbol["st_value"] for symbol in symbols if symbol["st_shndx"] != "SHN_UNDEF"}


def test_nothing_but_driver_calls_is_visible_and_no_symbols_are_left() -> None:
    file = driver_file()
    assert all(name.startswith("cu") for name in exports(file))
    assert file.get_section_by_name(".symtab") is None
    assert file.get_section_by_name(".eh_frame") is not None


def test_every_export_is_a_stub_that_jumps_through_a_slot() -> None:
    file = driver_file()
    data = file.get_section_by_name(".data")
    text = file.get_section_by_name(".text")
    relative = {
        relocation["r_offset"]: relocation["r_addend"]
        for relocation in file.get_section_by_name(".rela.dyn").iter_relocations()
        if relocation["r_info_type"] == 8  # R_X86_64_RELATIVE
    }
    machine = capstone.Cs(capstone.CS_ARCH_X86, capstone.CS_MODE_64)
    implementations = set()
    for name, address in exports(file).items():
        code = text.data()[address - text["sh_addr"] :][:32]
        first, second, third = list(machine.disasm(code, address))[:3]
        assert [first.mnemonic, second.mnemonic, third.mnemonic] == ["cmp", "je", "jmp"], name
        slot = third.address + third.size + int.from_bytes(third.bytes[2:6], "little", signed=True)
        assert data["sh_addr"] <= slot < data["sh_addr"] + data["sh_size"]
        implementations.add(relative[slot])
    assert len(implementations) == len(exports(file))
    assert not implementations & set(exports(file).values())


def look_up(name: str, version: int, flags: int = 0) -> tuple[int, int | None, int]:
    address, status = ctypes.c_void_p(), ctypes.c_int(-1)
    code = load().cuGetProcAddress_v2(
        name.encode(), ctypes.byref(address), version, ctypes.c_uint64(flags), ctypes.byref(status)
    )
    return code, address.value, status.value


def address_of(symbol: str) -> int | None:
    return ctypes.cast(getattr(load(), symbol), ctypes.c_void_p).value


@pytest.mark.virtual_gpu
@pytest.mark.parametrize(
    ("name", "version", "flags", "symbol"),
    [
        ("cuMemAlloc", 12000, 0, "cuMemAlloc_v2"),
        ("cuMemFree", 3020, LEGACY, "cuMemFree_v2"),
        ("cuMemcpyHtoD", 12000, LEGACY, "cuMemcpyHtoD_v2"),
        ("cuMemcpyHtoD", 12000, PER_THREAD, "cuMemcpyHtoD_v2_ptds"),
        ("cuMemcpyHtoD", 3020, PER_THREAD, "cuMemcpyHtoD_v2"),
        ("cuStreamSynchronize", 13000, PER_THREAD, "cuStreamSynchronize_ptsz"),
        ("cuMemAlloc", 13000, PER_THREAD, "cuMemAlloc_v2"),
        ("cuCtxCreate", 11000, 0, "cuCtxCreate_v2"),
        ("cuCtxCreate", 12000, 0, "cuCtxCreate_v3"),
        ("cuCtxCreate", 13050, 0, "cuCtxCreate_v4"),
        ("cuEventElapsedTime", 12070, 0, "cuEventElapsedTime"),
        ("cuEventElapsedTime", 12080, 0, "cuEventElapsedTime_v2"),
        ("cuStreamWaitValue32", 11060, 0, "cuStreamWaitValue32"),
        ("cuStreamWaitValue32", 11070, PER_THREAD, "cuStreamWaitValue32_v2_ptsz"),
        ("cuGetProcAddress", 12000, 0, "cuGetProcAddress_v2"),
        ("cuGraphExecKernelNodeSetParams", 11000, 0, "cuGraphExecKernelNodeSetParams"),
        ("cuGraphExecKernelNodeSetParams", 12000, 0, "cuGraphExecKernelNodeSetParams_v2"),
    ],
)
def test_lookup_answers_the_export_of_that_version_and_flavour(
    name: str, version: int, flags: int, symbol: str
) -> None:
    assert look_up(name, version, flags) == (0, address_of(symbol), SUCCESS)


@pytest.mark.virtual_gpu
def test_lookup_of_what_does_not_exist() -> None:
    # Like 535.261.03: CUDA 12's form succeeds with a null address, CUDA 11's returns "not found".
    assert look_up("cuNoSuchThing", 12000) == (0, None, SYMBOL_NOT_FOUND)
    assert look_up("cuMemAlloc_v2", 12000) == (0, None, SYMBOL_NOT_FOUND)
    assert look_up("cuMemAlloc", 1000) == (0, None, VERSION_NOT_SUFFICIENT)
    address = ctypes.c_void_p(7)
    old = load().cuGetProcAddress(b"cuNoSuchThing", ctypes.byref(address), 12000, ctypes.c_uint64(0))
    assert (old, address.value) == (NOT_FOUND, 7)


@pytest.mark.virtual_gpu(fresh=True)
def test_calls_before_initialisation_are_refused() -> None:
    count = ctypes.c_int()
    assert load().cuDeviceGetCount(ctypes.byref(count)) == 3
    assert load().cuInit(0) == 0
    assert load().cuDeviceGetCount(ctypes.byref(count)) == 0
    assert count.value == 1


MIPMAPS = """
import ctypes, sys
driver = ctypes.CDLL(sys.argv[1])
driver.cuInit(0)
print(driver.cuMipmappedArrayCreate((ctypes.c_char * 8)(), (ctypes.c_char * 40)(), 3))
"""


def test_mipmapped_arrays_are_refused_by_name() -> None:
    program = [sys.executable, "-c", MIPMAPS, str(library_folder() / "libcuda.so.1")]
    done = subprocess.run(program, capture_output=True, text=True, check=True)
    assert int(done.stdout) == NOT_SUPPORTED
    assert done.stderr == "vgpu: cuMipmappedArrayCreate is refused: mipmapped arrays are not implemented\n"


@pytest.mark.virtual_gpu(fresh=True)
@pytest.mark.parametrize("name", ["cuStreamBatchMemOp", "cuTensorMapEncodeTiled"])
def test_what_cublas_looks_up_is_there_though_refused(name: str) -> None:
    assert load().cuInit(0) == 0
    context = ctypes.c_void_p()
    assert load().cuDevicePrimaryCtxRetain(ctypes.byref(context), 0) == 0
    assert load().cuCtxSetCurrent(context) == 0
    assert getattr(load(), name)() == NOT_SUPPORTED


@pytest.mark.virtual_gpu
def test_unknown_export_table_is_refused() -> None:
    table = ctypes.c_void_p(7)
    assert load().cuGetExportTable(ctypes.byref(table), (ctypes.c_char * 16)()) == 1
    assert table.value is None


@pytest.mark.virtual_gpu
@pytest.mark.parametrize(
    ("begin", "error"),
    [
        (b"\x7fELF", "CUDA_ERROR_NO_BINARY_FOR_GPU"),
        (b"\x50\xed\x55\xba", "CUDA_ERROR_NO_BINARY_FOR_GPU"),
        (b".version 8.0\n", "CUDA_ERROR_INVALID_IMAGE"),
    ],
)
def test_images_with_gpu_code_are_refused(begin: bytes, error: str) -> None:
    from cuda.bindings import driver

    from tests.vgpu.virtual_gpu import context

    with context():
        image = begin + bytes(64)
        assert driver.cuModuleLoadData(image)[0] == getattr(driver.CUresult, error)


def test_runtime_does_not_link_the_driver_and_finds_it_beside_itself() -> None:
    with (library_folder() / "libcudart.so.13").open("rb") as stream:
        tags = list(ELFFile(stream).get_section_by_name(".dynamic").iter_tags())
    assert not [tag.needed for tag in tags if tag.entry.d_tag == "DT_NEEDED" and "cuda" in tag.needed]
    script = f"import ctypes; print(ctypes.CDLL({str(library_folder() / 'libcudart.so.13')!r}).cudaFree(None))"
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert done.stdout == "0\n"
