"""How results are named after the program."""

from __future__ import annotations

from pathlib import Path

import pytest

from ffm.results.folder.paths import application_name


@pytest.mark.parametrize(
    ("command", "name"),
    [
        ("./cumf_als 1 2", "cumf_als"),
        ("python train.py --epochs 3", "train"),
        ("/usr/bin/python3.12 -u -X dev -W error models/train.v2.py", "train.v2"),
        ("python3 -m torch.distributed.run train.py", "torch.distributed.run"),
        ("python -c pass train.py", "python"),
        ("python", "python"),
        ("python-config a.py", "python-config"),
    ],
)
def test_results_are_named_after_the_program_or_the_script(command: str, name: str) -> None:
    assert application_name(command.split()) == name


@pytest.mark.parametrize(
    ("command", "name"),
    [
        ("env -u HOME ./app 1", "app"),
        ("/usr/bin/env ./app 1", "app"),
        ("env python3 -u models/train.py ./app", "train"),
        ("sh run.sh", "run.sh"),
        ("sh missing.sh", "sh"),
        ("sh notes.txt", "sh"),
        ("./app ./other", "app"),
        ("./app python3 train.py", "app"),
    ],
)
def test_results_of_a_launcher_are_named_after_what_it_runs(
    command: str, name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    for program, content in (("app", b"\x7fELF"), ("other", b"\x7fELF"), ("run.sh", b"#!"), ("notes.txt", b"text")):
        Path(program).write_bytes(content)
    assert application_name(command.split()) == name
