"""Builds stand-ins for NVIDIA's closed libraries, so that PyTorch's and XLA's CUDA libraries load without them.

    python tests/clients/stand_ins.py linked|asked CUDA_INCLUDE_FOLDER FOLDER LIBRARY...

PyTorch's libraries are linked with them (`linked`): every function that one needs exists, with the version that it
needs. XLA opens them at run time and looks up each function by name (`asked`): every function exists whose name occurs
in the library. Each returns its library's own "not supported". Those of cuBLAS in `blas.cpp` work, as described there,
and for XLA the functions that open a library and report its version succeed.

LIBRARY_PATH leads to the virtual GPU's runtime.
"""

from __future__ import annotations

import re
import subprocess
import sys
import tempfile
from pathlib import Path

from elftools.elf.elffile import ELFFile
from elftools.elf.gnuversions import GNUVerNeedSection

HERE = Path(__file__).resolve().parent
FLAGS = ["-shared", "-fPIC", "-O1", "-Wall", "-Wextra", "-Wno-unused-parameter", "-Werror", "-fvisibility=hidden"]

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
    "libnvidia-ml.so.1": ("nvml", "3"),  # NVML_ERROR_NOT_SUPPORTED
    "libnvrtc.so.13": ("nvrtc", "11"),  # NVRTC_ERROR_INTERNAL_ERROR: likewise
    "libnvshmem_host.so.3": ("nvshmem", "7"),  # NVSHMEMX_ERROR_INTERNAL: likewise
}
"""For each library: the prefix of its functions' names, and what they return."""

ADVICE = {"libcudnn.so.9": ": convolve without cuDNN (torch.backends.cudnn.enabled = False)"}
"""What to do without a library, after the sentence that it is missing. PyTorch passes on what cuDNN says."""

ASKED = ("libcublas.so.13", "libcublasLt.so.13", "libcudnn.so.9", "libnvidia-ml.so.1")
"""Those that XLA needs in order to start, or to start without error messages."""

ANSWERS = {
    "ncclGetLastError": '(long)"a stand-in"',
    "cudnnGetVersion": "0",
    "cublasLtGetVersion": "0",
}
"""Those that return no status. Functions named ...ErrorString return a text."""

ANSWERS_TO_XLA = {
    "cublasLtCreate": "(*(void **)first = &opened, 0)",
    "cublasLtDestroy": "0",
    "cudnnCreate": "(*(void **)first = &opened, 0)",
    "cudnnDestroy": "0",
    "cudnnGetProperty": "(*(int *)second = (int[]){9, 20, 0}[(long)first], 0)",  # major, minor, patch level
    "cudnnGetVersion": "92000",
    "cudnnSetStream": "0",
    "nvmlInit": "0",
    "nvmlInit_v2": "0",
    "nvmlShutdown": "0",
    "nvmlSystemGetDriverVersion": '(strncpy(first, "580.65.06", (unsigned)(long)second), 0)',
}
"""If a library refuses these, PyTorch continues without it, and XLA without the whole device."""


def linked(library: Path) -> dict[str, dict[str, str]]:
    """For each stand-in that the library needs: the functions used from it, with their version, or nothing."""
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


def asked(library: Path) -> dict[str, dict[str, str]]:
    """For each of ASKED: the functions whose names occur as texts in the library, all without a version."""
    found: dict[str, dict[str, str]] = {stand_in: {} for stand_in in ASKED}
    for name in re.findall(rb"(?<=\0)[a-z]\w+(?=\0)", library.read_bytes()):
        owner = owner_of(name.decode())
        if owner in found and name.removeprefix(REFUSALS[owner][0].encode())[:1].isupper():
            found[owner][name.decode()] = ""
    return found


def owner_of(name: str) -> str:
    """Return the library of an unversioned function: the one with the longest matching prefix, or none."""
    fitting = [(prefix, library) for library, (prefix, _) in REFUSALS.items() if name.startswith(prefix)]
    return max(fitting, key=lambda pair: len(pair[0]), default=("", ""))[1]


def build(library: str, functions: dict[str, str], answers: dict[str, str], folder: Path, include: Path) -> None:
    """Build one stand-in into `folder`."""
    own = (HERE / "blas.cpp").read_text() if library == "libcublas.so.13" else ""
    _, refusal = REFUSALS[library]
    source, versions = (
        "#include <string.h>\nextern char opened[64];\nchar opened[64];\n",
        dict.fromkeys(functions.values()),
    )
    for name in functions:
        if f" {name}(" in own:
            continue
        text = (
            f'(long)"{library} is not on this virtual GPU, and its stand-in supports nothing{ADVICE.get(library, "")}"'
        )
        answer = answers.get(name, text if re.search("(ErrorString|StatusString|StatusName)$", name) else refusal)
        call = f"long {name}(void *first, void *second)"
        source += f'__attribute__((visibility("default"))) {call};\n{call} {{ return {answer}; }}\n'
    with tempfile.TemporaryDirectory() as scratch:
        files = Path(scratch)
        (files / "refused.c").write_text(source)
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
            command += [f"-isystem{include}", HERE / "blas.cpp", "-lcudart"]
        subprocess.run(command, check=True)


def main() -> None:
    way, include, folder, *libraries = sys.argv[1:]
    wanted, answers = (asked, ANSWERS | ANSWERS_TO_XLA) if way == "asked" else (linked, ANSWERS)
    Path(folder).mkdir(parents=True, exist_ok=True)
    functions: dict[str, dict[str, str]] = {}
    for library in libraries:
        for owner, found in wanted(Path(library)).items():
            functions.setdefault(owner, {}).update(found)
    for owner, names in functions.items():
        build(owner, names, answers, Path(folder), Path(include))
    print(f"{len(functions)} stand-ins with {sum(map(len, functions.values()))} functions in {folder}")


if __name__ == "__main__":
    main()
