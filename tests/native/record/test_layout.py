"""The layout of a recording as the reader understands it is the one that the compiler makes."""

from __future__ import annotations

import subprocess
from pathlib import Path

from ffm.instrument.recording.layout import DECLARATIONS, constants, record_type, structures


def test_constants_and_structures_are_those_of_the_compiler(tmp_path: Path) -> None:
    """Of each field also the size, and whether it is signed."""
    said = [f"{name} {value}" for name, value in constants().items()]
    asked = [f'printf("{name} %llu\\n", (unsigned long long){name});' for name in constants()]
    for name in structures():
        layout = record_type(name)
        assert layout.fields is not None
        said.append(f"{name} {layout.itemsize}")
        asked.append(f'printf("{name} %zu\\n", sizeof({name}));')
        for field, (kind, offset, *_) in layout.fields.items():
            said.append(f"{name}.{field} {offset} {kind.itemsize} {int(kind.base.kind in 'iS')}")
            element = f"(({name} *)0)->{field}" + "[0]" * (kind.shape != () or kind.kind == "S")
            asked.append(
                f'printf("{name}.{field} %zu %zu %d\\n", offsetof({name}, {field}), sizeof((({name} *)0)->{field}), '
                f"(__typeof__({element}))-1 < 0);"
            )
    source = tmp_path / "layout.c"
    included = "".join(f'#include "{header}"\n' for header in DECLARATIONS)
    source.write_text(
        f"#include <stddef.h>\n#include <stdint.h>\n#include <stdio.h>\n{included}"
        f"int main(void) {{ {' '.join(asked)} return 0; }}\n"
    )
    subprocess.run(["gcc", "-w", "-o", tmp_path / "layout", source], check=True)
    printed = subprocess.run([tmp_path / "layout"], capture_output=True, text=True, check=True).stdout
    assert printed.splitlines() == said
    assert len(structures()) > 20


def test_no_declaration_is_passed_over() -> None:
    text = "".join(header.read_text() for header in DECLARATIONS)
    assert text.count("typedef struct") == len(structures())
    assert {word.rstrip(",;") for word in text.split() if word.startswith("FFM_CHUNK_")} <= constants().keys()
