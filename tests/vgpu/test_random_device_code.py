"""Device code that is damaged ends in an error code, not in the program."""

from __future__ import annotations

from pathlib import Path

import pytest

from ffm.vgpu import __path__ as vgpu_folders
from tests.conftest import cuda_include
from tests.native.fuzzing import fuzz
from tests.vgpu.cubins import PTX, SCALE, container, cubin

pytestmark = pytest.mark.sanitized

DRIVER = next(path for folder in vgpu_folders if (path := Path(folder) / "driver").is_dir())
PARSERS = [
    *(
        DRIVER / "code" / name
        for name in ("compressed_code.cpp", "container.cpp", "machine_code.cpp", "portable_code.cpp")
    ),
    *sorted((DRIVER / "ptx" / "syntax").glob("*.cpp")),
]
CONTAINER_HEADER = 16
DAMAGED_TEXTS = (
    b".const .b8 weights[3] = {1",
    b".global .attribute(.managed .b8 x;",
    b".global .b8 x = " + b"{" * 2000,
    b".entry scale() { .reg .b32 %r<9999999999>; }",
    b".entry scale() { mov.b64 %a, -0x8000000000000000; }",
)


def test_damaged_images_are_refused(tmp_path: Path) -> None:
    machine_code = cubin({"scale": SCALE, "empty": []}, {"counter": 40})
    entries = container((2, 90, 0x11, machine_code, 0), (1, 80, 0x11, PTX, 0), (1, 90, 0x2011, b"\x10a\x00", 300))
    fuzz(
        tmp_path,
        Path(__file__).parent / "fuzz_device_code.cpp",
        PARSERS,
        [f"-I{DRIVER}", "-isystem", str(cuda_include()), "-ldl"],
        longest=4096,
        examples=[
            b"c" + entries[CONTAINER_HEADER:],
            b"m" + machine_code,
            b"t" + PTX,
            *(b"t" + text for text in DAMAGED_TEXTS),
        ],
        portion=4,
    )
