"""The include file for the native collector agrees with the catalogue."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import ffm
from ffm.driver.catalogue import load_catalogue
from ffm.driver.vocabulary import DefaultStream

PRINTER = """
#include <stdio.h>
#include "catalogue.inc"
#include "catalogue.inc"
#define FFM_FUNCTION(index, name, arity, kind, memory, direction, shape, destination, source, bytes, \\
                     stream, result, handle, parameters, extra, node, description, flags, element, asynchronous, \\
                     per_thread_stream, awaits, effect) \\
    printf("%d %s %d %d %d %d %d %d %d %d %d %d %d %d %d %d %d %d %d %d %d %d %d\\n", index, #name, arity, \\
           kind == FFM_KIND_FREE, memory == FFM_MEMORY_DEVICE, direction == FFM_DIRECTION_NONE, \\
           shape == FFM_SHAPE_PLAIN, \\
           destination, source, bytes, stream, result, handle, parameters, extra, node, description, flags, element, \\
           asynchronous, per_thread_stream, \\
           awaits == FFM_AWAITS_STREAM, effect == FFM_EFFECT_WAIT_EVENT);
int main(void)
{
    puts(FFM_CATALOGUE_DIGEST);
    printf("%d\\n", FFM_FUNCTION_COUNT);
#include "catalogue.inc"
    return 0;
}
"""


def generate(output: Path) -> None:
    # Isolated from installed packages, as in the native build.
    root = Path(ffm.__file__).parents[1]
    command = [sys.executable, "-S", "-m", "ffm.driver.generate", str(output)]
    subprocess.run(command, check=True, cwd=root)


def test_compiled_include_holds_every_row(tmp_path: Path) -> None:
    generate(tmp_path / "catalogue.inc")
    (tmp_path / "printer.c").write_text(PRINTER)
    program = tmp_path / "printer"
    flags = ["-std=c11", "-Wall", "-Wextra", "-Werror"]
    subprocess.run(["gcc", *flags, "-o", str(program), str(tmp_path / "printer.c")], check=True)
    lines = subprocess.run([program], check=True, capture_output=True, text=True).stdout.splitlines()
    catalogue = load_catalogue()
    assert lines[:2] == [catalogue.digest, str(len(catalogue))]
    expected = [
        f"{f.index} {f.name} {f.arity} {int(f.kind == 'free')} {int(f.memory == 'device')} "
        f"{int(f.direction == 'none')} {int(f.shape == 'plain')} {f.destination} {f.source} {f.bytes} "
        f"{f.stream} {f.result} {f.handle} {f.parameters} {f.extra} {f.node} {f.description} {f.flags} {f.element} "
        f"{int(f.asynchronous)} "
        f"{int(f.default_stream is DefaultStream.PER_THREAD)} {int(f.awaits == 'stream')} "
        f"{int(f.effect == 'wait_event')}"
        for f in catalogue.functions
    ]
    assert lines[2:] == expected


def test_unchanged_output_is_not_written_again(tmp_path: Path) -> None:
    output = tmp_path / "catalogue.inc"
    generate(output)
    output.chmod(0o444)
    before = output.stat()
    generate(output)
    assert output.stat().st_mtime_ns == before.st_mtime_ns
    assert output.stat().st_ino == before.st_ino
