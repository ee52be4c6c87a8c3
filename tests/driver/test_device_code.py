"""Which device code a file contains, and for which GPUs the driver must compile it."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest

from ffm.driver.device_code import DeviceCode, device_code
from tests.driver.fat_binaries import CUBIN, PTX, container, library_with


def test_each_source_is_listed_with_its_architectures(tmp_path: Path) -> None:
    content = container((CUBIN, 80), (CUBIN, 90), (PTX, 90)) + bytes(8) + container() + container((PTX, 75))
    assert device_code(library_with(tmp_path, content)) == [DeviceCode((80, 90), (90,)), DeviceCode((), (75,))]


@pytest.mark.parametrize(
    ("machine", "portable", "capability", "compiled"),
    [
        ((90,), (), 90, False),
        ((75,), (75,), 90, True),
        ((), (75,), 75, True),
        ((80,), (80,), 86, False),  # machine code runs on later GPUs of its generation
        ((86,), (86,), 80, False),  # too new: it does not run at all
        ((86,), (80,), 80, True),
        ((90,), (90,), 100, True),
        ((100,), (100,), 103, False),
        ((90,), (), 100, False),
    ],
)
def test_what_a_gpu_needs_compiled(
    machine: tuple[int, ...], portable: tuple[int, ...], capability: int, compiled: bool
) -> None:
    assert DeviceCode(machine, portable).compiled_for(capability) == compiled


def test_files_without_device_code_have_none(tmp_path: Path) -> None:
    (tmp_path / "script.py").write_text("print()")
    assert device_code(tmp_path / "script.py") == []
    assert device_code(tmp_path / "missing") == []
    assert device_code(Path("/bin/true")) == []


@pytest.mark.parametrize("cut", [1, 17, 40, 90])
def test_a_damaged_section_is_read_as_far_as_it_goes(tmp_path: Path, cut: int) -> None:
    content = container((CUBIN, 80), (PTX, 90))
    assert len(device_code(library_with(tmp_path, content[:cut]))) <= 1


@pytest.mark.skipif(shutil.which("nvcc") is None, reason="there is no nvcc")
@pytest.mark.parametrize(
    ("options", "compiled"),
    [
        (["-arch=sm_75"], True),
        (["-gencode", "arch=compute_75,code=compute_75"], True),
        (["-arch=sm_90"], False),
        (["-gencode", "arch=compute_90,code=sm_90", "-gencode", "arch=compute_90,code=compute_90"], False),
    ],
)
def test_programs_of_nvcc(tmp_path: Path, options: list[str], compiled: bool) -> None:
    source, program = tmp_path / "kernel.cu", tmp_path / "program"
    source.write_text("__global__ void kernel(float *x) { x[0] = 1; }\nint main() { kernel<<<1, 1>>>(nullptr); }\n")
    subprocess.run(["nvcc", *options, "-o", str(program), str(source)], check=True, capture_output=True)
    code = device_code(program)
    assert code
    assert any(part.compiled_for(90) for part in code) == compiled
