"""How results are named after the program."""

from __future__ import annotations

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
