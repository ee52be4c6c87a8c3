"""Snakemake as `ffm run` starts it: the packaged workflow in a separate process, watched until it ends."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
import tempfile
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

import platformdirs

from ffm.cache import private_cache
from ffm.cli.running.stage_events import VARIABLE, EventReader, StageEvent
from ffm.errors import FfmError
from ffm.workflow import PROFILES, SNAKEFILE, origins

POLL_S = 0.1
PATIENCE_S = 20.0
"""How long an interrupted workflow may take to end: the program is stopped first, and its recording is closed."""

_SENTENCE = re.compile(r"^ffm: (.*)$", re.MULTILINE)
_ENDED = re.compile(r"^(?:interrupted|ended by \w+)\. ?")


def run_workflow(settings: dict[str, object], *, force: bool, tell: Callable[[list[StageEvent]], None]) -> None:
    """Run the stages that are not up to date; `tell` is called several times a second with new events.

    Raises:
        FfmError: A stage or Snakemake failed; the message is the stage's own sentence.
               KeyboardInterrupt: ffm was asked to end, and so was everything that ran.
    """
    with tempfile.TemporaryDirectory(prefix="ffm-run-") as name:
        folder = Path(name)
        (folder / "settings.json").write_text(json.dumps(settings))
        events = EventReader(folder / "events")
        log = folder / "log"
        command = [sys.executable, "-m", "snakemake", "--snakefile", SNAKEFILE, "--profile", "none"]
        command += ["--workflow-profile", str(PROFILES / "default"), "--configfile", str(folder / "settings.json")]
        environment = {**os.environ, **_cache(folder), VARIABLE: str(folder / "events")}
        environment[origins.VARIABLE] = origins.with_this_process(os.environ.get(origins.VARIABLE))
        with log.open("wb") as sink:
            # In a separate process group, so that Ctrl-C arrives only here and is passed on once.
            snakemake = subprocess.Popen(
                [*command, *(["--forceall"] if force else [])],
                stdin=subprocess.DEVNULL,
                stdout=sink,
                stderr=subprocess.STDOUT,
                env=environment,
                process_group=0,
            )
        try:
            while snakemake.poll() is None:
                tell(events.news())
                with suppress(subprocess.TimeoutExpired):
                    snakemake.wait(POLL_S)
            tell(events.news())
        except KeyboardInterrupt as interruption:
            _end(snakemake)
            for sentence in _sentences(log):
                if note := _ENDED.sub("", sentence):
                    interruption.add_note(note)
            raise
        if snakemake.returncode:
            raise FfmError(_why(log))


def _cache(folder: Path) -> dict[str, str]:
    """Moves Snakemake's cache elsewhere if the user's own is not writable; Snakemake would end without a word."""
    cache = private_cache()
    if cache == Path(platformdirs.user_cache_dir("ffm")):
        return {}
    return {"XDG_CACHE_HOME": str(cache or folder)}


def _end(snakemake: subprocess.Popen[bytes]) -> None:
    """Interrupt the workflow and its stage, which stops the program; kill both if that takes too long."""
    try:
        os.killpg(snakemake.pid, signal.SIGINT)
        snakemake.wait(PATIENCE_S)
    except (subprocess.TimeoutExpired, KeyboardInterrupt):
        os.killpg(snakemake.pid, signal.SIGKILL)
        snakemake.wait()
    except ProcessLookupError:
        snakemake.wait()


def _sentences(log: Path) -> list[str]:
    """Return what stages, or the workflow, said to the user."""
    return list(dict.fromkeys(_SENTENCE.findall(log.read_text(errors="replace"))))


def _why(log: Path) -> str:
    sentences = _sentences(log)
    if sentences:
        return " ".join(sentences)
    return f"Snakemake failed, and said:\n{log.read_text(errors='replace').strip()}"
