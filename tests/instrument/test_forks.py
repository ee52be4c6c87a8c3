"""Forks of a program under the instruments."""

from __future__ import annotations

import subprocess
from pathlib import Path

from ffm.instrument.probing.remembered import wait_function
from ffm.instrument.session.instruments import Instruments
from ffm.instrument.session.runner import run_instrumented

FORKS = 5
LIMIT_S = 15.0
"""Far below what the forks would take if each waited as long as it may for a module to be loaded, 5 s."""

PROGRAM = f"""
#include <link.h>
#include <sys/wait.h>
#include <unistd.h>

int main(void)
{{
    int wrong = _r_debug.r_version < 1;
    for (int number = 0; number < {FORKS}; number++) {{
        int status = 1;
        pid_t child = fork();
        if (child == 0)
            _exit(0);
        waitpid(child, &status, 0);
        wrong += status != 0;
    }}
    return wrong;
}}
"""


def test_a_program_with_its_own_copy_of_the_list_of_modules_forks_without_delay(tmp_path: Path) -> None:
    source, program, recordings = tmp_path / "forks.c", tmp_path / "forks", tmp_path / "recordings"
    source.write_text(PROGRAM)
    subprocess.run(["gcc", "-fno-pic", "-no-pie", str(source), "-o", str(program)], check=True)
    recordings.mkdir()
    outcome = run_instrumented(
        [str(program)],
        Instruments(recordings, ["cuCtxSynchronize"], 0, None, wait_function),
        output=tmp_path / "output",
        timeout_s=LIMIT_S,
    )
    assert outcome.ending.sound
