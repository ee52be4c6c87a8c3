"""The table of NVIDIA's instructions (`isa.toml`) against the driver, the cases of values and NVIDIA's assembler."""

from __future__ import annotations

import ast
import re
import shutil
import subprocess
from collections import defaultdict
from pathlib import Path

import pytest

from tests.vgpu.instructions.isa import VARIABLES, Form, forms, kernel_of
from tests.vgpu.instructions.test_conformance import FAMILIES
from tests.vgpu.ptx import HEAD, Program, Status, launched_apart, quick_gpu

HERE = Path(__file__).parent
SPECIAL = (
    "%tid.x", "%ntid.y", "%laneid", "%warpid", "%nwarpid", "%ctaid.z", "%nctaid.x", "%smid", "%nsmid", "%gridid",
    "%is_explicit_cluster", "%clusterid.x", "%nclusterid.y", "%cluster_ctaid.z", "%cluster_nctaid.x",
    "%cluster_ctarank", "%cluster_nctarank", "%lanemask_eq", "%lanemask_le", "%lanemask_lt", "%lanemask_ge",
    "%lanemask_gt", "%clock", "%clock_hi", "%globaltimer_lo", "%globaltimer_hi", "%envreg0", "%envreg31",
    "%total_smem_size", "%aggr_smem_size", "%dynamic_smem_size",
)  # fmt: skip
SPECIAL_64 = ("%clock64", "%globaltimer")
REFUSED_REGISTERS = ("%pm0", "%pm7_64", "%current_graph_exec", "%reserved_smem_offset_begin")


def names_of_tests() -> set[str]:
    """The functions of the tests beside this one, and of those one folder above."""
    return {
        node.name
        for path in [*HERE.glob("test_*.py"), *HERE.parent.glob("test_*.py")]
        for node in ast.parse(path.read_text()).body
        if isinstance(node, ast.FunctionDef)
    }


def by_section(chosen: list[Form]) -> dict[str, list[Form]]:
    found: dict[str, list[Form]] = defaultdict(list)
    for form in chosen:
        found[form.section].append(form)
    return found


def test_every_form_that_runs_has_a_case_of_values_or_a_test_of_its_own() -> None:
    cases = {case.form for family in FAMILIES.values() for case in family()}
    names = names_of_tests()
    chosen = [form for form in forms() if form.runs]
    assert [form.name for form in chosen if not form.checked and form.name not in cases] == []
    assert sorted({name for form in chosen for name in form.checked} - names) == []
    counted = [sum(form.name in cases for form in chosen), len(chosen), sum(not form.runs for form in forms())]
    print(f"\n{counted[1]} forms run, {counted[0]} of them compared with exact values; {counted[2]} are refused")


@pytest.mark.virtual_gpu
def test_every_form_that_runs_is_translated() -> None:
    """Behind a return: what they do is for other tests."""
    sections = by_section([form for form in forms() if form.runs])
    registers = [f"mov.u32 %r1, {name};" for name in SPECIAL] + [f"mov.u64 %w1, {name};" for name in SPECIAL_64]
    kernels = [
        kernel_of(f"k{place}", ["ret;", *(form.code for form in group)])
        for place, group in enumerate(sections.values())
    ]
    with quick_gpu():
        program = Program(VARIABLES + "".join([*kernels, kernel_of("special", registers)]))
        found = {section: program.launch(f"k{place}", 1, 1, 0, 0, 0, 0, 0) for place, section in enumerate(sections)}
        assert {section: status for section, status in found.items() if status != Status.CUDA_SUCCESS} == {}
        assert program.launch("special", 1, 1, 0, 0, 0, 0, 0) == Status.CUDA_SUCCESS


def test_every_form_that_is_refused_is_named() -> None:
    statements = {form.name: form.code for form in forms() if not form.runs}
    statements |= {name: f"mov.u{64 if name in ('%pm7_64', '%current_graph_exec') else 32} "
                         f"{'%w1' if name in ('%pm7_64', '%current_graph_exec') else '%r1'}, {name};"
                   for name in REFUSED_REGISTERS}  # fmt: skip
    text = VARIABLES + "".join(kernel_of(f"k{place}", [code]) for place, code in enumerate(statements.values()))
    answers, told = launched_apart(text, len(statements))
    assert set(answers) == {Status.CUDA_ERROR_NOT_SUPPORTED}
    assert len(told) == len(statements)
    unnamed = [
        line for place, (name, line) in enumerate(zip(statements, told, strict=True))
        if f"kernel k{place} " not in line or name.rstrip(";") not in line
    ]  # fmt: skip
    assert unnamed == []


def assembler() -> str | None:
    """NVIDIA's, if it is installed."""
    return shutil.which("ptxas") or next((str(path) for path in Path("/usr/local").glob("cuda-13*/bin/ptxas")), None)


@pytest.mark.skipif(assembler() is None, reason="needs ptxas of CUDA 13")
@pytest.mark.parametrize("target", sorted({form.target for form in forms()} - {"30"}))
def test_nvidias_assembler_accepts_every_form(tmp_path: Path, target: str) -> None:
    """So the table says nothing of what does not exist. What `sm_30` had last is gone from it."""
    program = assembler()
    assert program is not None
    text = HEAD.replace("8.3", "9.0").replace("sm_90", f"sm_{target}") + VARIABLES
    for place, group in enumerate(by_section([form for form in forms() if form.target == target]).values()):
        text += kernel_of(f"k{place}", [form.code for form in group])
    source = tmp_path / "all.ptx"
    source.write_text(text)
    command = [program, f"-arch=sm_{target}", "-O0", str(source), "-o", str(tmp_path / "all.cubin")]
    ended = subprocess.run(command, capture_output=True, text=True, check=False)
    lines = text.splitlines()
    wrong = [
        f"{lines[int(line) - 1].strip()} {why}" for line, why in re.findall(r"line (\d+); error\s*: (.*)", ended.stderr)
    ]
    assert (wrong, ended.returncode) == ([], 0), ended.stderr[:2000]
