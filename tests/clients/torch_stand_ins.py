"""Builds stand-ins for the closed libraries that PyTorch's CUDA libraries link, so that these load without them.

    python tests/clients/torch_stand_ins.py SITE_PACKAGES CUDA_INCLUDE_FOLDER

Every function that PyTorch wants of such a library is there, with the version that it wants, and answers the library's
own "not supported"; those of cuBLAS in `torch_blas.cpp` work, as that says. They lie where NVIDIA's packages would.
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
from pathlib import Path

from elftools.elf.elffile import ELFFile
from elftools.elf.gnuversions import GNUVerNeedSection

HERE = Path(__file__).resolve().parent
RUNTIME = HERE.parents[1] / "ffm" / "vgpu" / "lib"
FLAGS = ["-shared", "-fPIC", "-O1", "-Wall", "-Wextra", "-Werror", "-fvisibility=hidden"]

REFUSALS = {
    "libcublas.so.13": ("cublas", "15"),  # CUBLAS_STATUS_NOT_SUPPORTED
    "libcublasLt.so.13": ("cublasLt", "15"),
    "libcudnn.so.9": ("cudnn", "3000"),  # CUDNN_STATUS_NOT_SUPPORTED
    "libcufft.so.12": ("cufft", "16"),  # CUFFT_NOT_SUPPORTED
    "libcufile.so.0": ("cuFile", "5007"),  # CU_FILE_PLATFORM_NOT_SUPPORTED, in the low half of CUfileError_t
    "libcupti.so.13": ("cupti", "27"),  # CUPTI_ERROR_NOT_SUPPORTED
    "libcurand.so.10": ("curand", "999"),  # CURAND_STATUS_INTERNAL_ERROR: there is no "not supported"
    "libcusolver.so.12": ("cusolver", "9"),  # CUSOLVER_STATUS_NOT_SUPPORTED
    "libcusparse.so.12": ("cusparse", "10"),  # CUSPARSE_STATUS_NOT_SUPPORTED
    "libcusparseLt.so.0": ("cusparseLt", "10"),
    "libnccl.so.2": ("nccl", "3"),  # ncclInternalError: likewise
    "libnvrtc.so.13": ("nvrtc", "11"),  # NVRTC_ERROR_INTERNAL_ERROR: likewise
    "libnvshmem_host.so.3": ("nvshmem", "7"),  # NVSHMEMX_ERROR_INTERNAL: likewise
}
"""For each library: how its functions' names begin, and what they answer."""

ANSWERS = {"ncclGetLastError": '(long)"a stand-in"', "cudnnGetVersion": "0", "cublasLtGetVersion": "0"}
"""Those that answer no status. Functions named ...ErrorString answer a text."""


def wanted(library: Path) -> dict[str, dict[str, str]]:
    """For each stand-in that the library needs: the functions wanted of it, with their version, or nothing."""
    with library.open("rb") as file:
        elf = ELFFile(file)
        dynamic = elf.get_section_by_name(".dynamic")
        versions, needs = elf.get_section_by_name(".gnu.version"), elf.get_section_by_name(".gnu.version_r")
        assert isinstance(needs, GNUVerNeedSection)
        found: dict[str, dict[str, str]] = {
            tag.needed: {} for tag in dynamic.iter_tags("DT_NEEDED") if tag.needed in REFUSALS
        }
        owners = {
            auxiliary["vna_other"]: (needed.name, auxiliary.name)
            for needed, auxiliaries in needs.iter_versions()
            for auxiliary in auxiliaries
        }
        for number, symbol in enumerate(elf.get_section_by_name(".dynsym").iter_symbols()):
            if symbol["st_shndx"] != "SHN_UNDEF" or not symbol.name:
                continue
            owner, version = owners.get(versions.get_symbol(number)["ndx"], ("", ""))
            owner = owner or owner_of(symbol.name)
            if owner in found:
                found[owner][symbol.name] = version
        return found


def owner_of(name: str) -> str:
    """Return the library of an unversioned function: that with the longest beginning, or none."""
    fitting = [(prefix, library) for library, (prefix, _) in REFUSALS.items() if name.startswith(prefix)]
    return max(fitting, key=lambda pair: len(pair[0]), default=("", ""))[1]


def build(library: str, functions: dict[str, str], folder: Path, include: Path) -> None:
    """Build one stand-in into `folder`."""
    own = (HERE / "torch_blas.cpp").read_text() if library == "libcublas.so.13" else ""
    _, refusal = REFUSALS[library]
    source, versions = "", dict.fromkeys(functions.values())
    for name in functions:
        if f" {name}(" in own:
            continue
        text = '(long)"a stand-in supports nothing"'
        answer = ANSWERS.get(name, text if name.endswith("ErrorString") else refusal)
        source += (
            f'__attribute__((visibility("default"))) long {name}(void);\nlong {name}(void) {{ return {answer}; }}\n'
        )
    with tempfile.TemporaryDirectory() as scratch:
        files = Path(scratch)
        (files / "refused.c").write_text(source or "extern int nothing;\n")
        names = {
            version: [name for name, own_version in functions.items() if own_version == version] for version in versions
        }
        script = "".join(
            f"{version} {{ global: {'; '.join(these)}; }};\n" for version, these in names.items() if version
        )
        (files / "versions.map").write_text(script)
        subprocess.run(["gcc", "-c", *FLAGS[1:], "-o", files / "refused.o", files / "refused.c"], check=True)
        command = [
            "g++",
            *FLAGS,
            "-static-libstdc++",
            "-o",
            folder / library,
            f"-Wl,-soname,{library}",
            files / "refused.o",
        ]
        if script:
            command.append(f"-Wl,--version-script={files / 'versions.map'}")
        if own:
            command += [f"-isystem{include}", HERE / "torch_blas.cpp", f"-L{RUNTIME}", "-lcudart"]
        subprocess.run(command, check=True)


def main() -> None:
    site_packages, include = map(Path, sys.argv[1:])
    folder = site_packages / "nvidia" / "cu13" / "lib"
    folder.mkdir(parents=True, exist_ok=True)
    functions: dict[str, dict[str, str]] = {}
    for library in sorted((site_packages / "torch" / "lib").glob("*.so")):
        for owner, found in wanted(library).items():
            functions.setdefault(owner, {}).update(found)
    for library, names in functions.items():
        build(library, names, folder, include)
    print(f"{len(functions)} stand-ins with {sum(map(len, functions.values()))} functions in {folder}")


if __name__ == "__main__":
    main()
