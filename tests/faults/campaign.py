"""Faults at random moments and places, from a fixed seed, and a count of what did not hold.

`python -m tests.faults.campaign --kills 1000 --workflows 100 --disks 300 --pairs 50 --links 50` is the long run
(`make faults`).
"""

from __future__ import annotations

import argparse
import errno
import os
import random
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import ffm
from ffm.results.folder.paths import STAGES
from tests.conftest import pytest_configure
from tests.faults.ground import UNWOUND, Ended, Ground, moment
from tests.faults.injected import build_full_disk, failing_disk
from tests.server import Server

SEED = 13
FORKED = 0.95
"""Share of the stages that begin in a fork of an interpreter that has imported ffm."""
BAD = ("hangs", "tracebacks", "crashes", "silent losses", "leftovers", "outlived", "misled")
ERRORS = (errno.ENOSPC, errno.EDQUOT, errno.EACCES, errno.EROFS, errno.EIO, errno.EMFILE)
OURS = Path(ffm.__file__).parent
"""Where a traceback of a workflow must name a file to count: Snakemake, interrupted while it starts, prints its own."""
SIGNALS = (signal.SIGKILL, signal.SIGTERM, signal.SIGINT)


class Campaign:
    """Rounds of faults on one ground. Broken promises are counted, and described in `stories`."""

    def __init__(self, ground: Ground, seed: int = SEED) -> None:
        self.ground = ground
        self.chance = random.Random(seed)
        self.counts: Counter[str] = Counter()
        self.stories: list[str] = []
        self.library = build_full_disk(ground.scratch)

    def kill(self) -> None:
        """End ffm, or the program, at a random moment of a stage."""
        stage, number = self.chance.choice(STAGES), self.chance.choice(SIGNALS)
        at_program = stage != "analysis" and self.chance.random() < 0.3
        delay = moment(self.chance, self.ground.seconds[stage])
        story = f"{number.name} to {'the program' if at_program else 'ffm'} {delay:.3f} s into {stage}"
        folder = self.ground.fresh()
        with self._round("kills", story) as note:
            # A new interpreter is interrupted while it imports, too.
            command = self.ground.begin(stage, folder, forked=self.chance.random() < FORKED)
            time.sleep(delay)
            sent = [_send(process, number) for process in (self.ground.processes() if at_program else [command.pid])]
            self.counts["kills sent"] += any(sent)
            ended = self.ground.wait(command)
            own_end = {-number} if at_program or number not in UNWOUND else {128 + number}
            self._judge(note, ended, allowed={0, 1} | (set() if at_program else own_end | _before_python(number)))
            if self.ground.outlived():
                note("outlived", "a process of the program, or one that measures it, lived on")
            unwound = ended.code >= 0
            if left := self.ground.leftovers(folder, unwound=unwound):
                note("leftovers", ", ".join(left))
            if lost := self.ground.lost(folder, stage if ended.code == 0 else None):
                note("silent losses", lost)

    def workflow(self) -> None:
        """End what runs the stages at a random moment: its stage ends too, and the next workflow is not blocked."""
        by, number = self.chance.choice(("ffm", "snakemake")), self.chance.choice(SIGNALS)
        delay = self.chance.uniform(0.5, 2 * sum(self.ground.seconds.values()))
        folder = self.ground.fresh()
        with self._round("workflows", f"{number.name} to {by} after {delay:.3f} s") as note:
            command = self.ground.begin_workflow(by, folder)
            time.sleep(delay)
            self.counts["workflows ended"] += _send(command.pid, number)
            ended = self.ground.wait(command)
            if ended.hung:
                note("hangs", ended.errors[-300:])
            if "Traceback" in ended.errors and (by == "ffm" or str(OURS) in ended.errors):
                note("tracebacks", ended.errors[-600:])
            if self.ground.outlived():
                note("outlived", "a process of the program, or one that measures it, lived on")
            if left := self.ground.leftovers(folder, unwound=False):
                note("leftovers", ", ".join(left))
            if lost := self.ground.lost(folder):
                note("silent losses", lost)

    def disk(self) -> None:
        """Let the n-th write below the results fail, and all after it."""
        stage, number, at = self.chance.choice(STAGES), self.chance.choice(ERRORS), self.chance.randint(1, 60)
        folder = self.ground.fresh()
        with self._round("disk faults", f"{errno.errorcode[number]} from operation {at} of {stage}") as note:
            ended = self.ground.wait(self.ground.begin(stage, folder, failing_disk(self.library, folder, at, number)))
            self._judge(note, ended, allowed={0, 1})
            if ended.code == 1 and len(_sentences(ended)) != 1:
                note("misled", f"{len(_sentences(ended))} sentences: {ended.errors[-300:]}")
            if self.ground.outlived():
                note("outlived", "a process of the program, or one that measures it, lived on")
            if left := self.ground.leftovers(folder, unwound=True):
                note("leftovers", ", ".join(left))
            if lost := self.ground.lost(folder, stage if ended.code == 0 else None):
                note("silent losses", lost)

    def pair(self) -> None:
        """Begin two stages in one folder, a moment apart: one has it, or one after the other."""
        stages = [self.chance.choice(STAGES[:-1]) for _ in range(2)]
        delay = moment(self.chance, self.ground.seconds[stages[0]])
        folder = self.ground.fresh()
        with self._round("pairs", f"{stages[1]} {delay:.3f} s after {stages[0]}") as note:
            first = self.ground.begin(stages[0], folder)
            time.sleep(delay)
            second = self.ground.begin(stages[1], folder)
            both = [self.ground.wait(second), self.ground.wait(first)]
            for ended in both:
                self._judge(note, ended, allowed={0, 1})
                if ended.code == 1 and not any(words in ended.errors for words in ("is in use by", ".json is older")):
                    note("misled", ended.errors[-300:])
            if all(ended.code for ended in both):
                note("misled", "both were refused")
            if lost := self.ground.lost(folder):
                note("silent losses", lost)

    def link(self) -> None:
        """Put links in the place of files and folders of the results; what they lead to stays as it is."""
        stage, folder = self.chance.choice(STAGES), self.ground.fresh()
        victim = self.ground.scratch / "victim"
        (victim / stage).mkdir(parents=True, exist_ok=True)
        (victim / stage / "mine").write_text("mine")
        there = sorted(path.relative_to(folder) for path in folder.rglob("*"))
        replaced = self.chance.choice(there)
        with self._round("links", f"{replaced} is a link in {stage}") as note:
            path = folder / replaced
            leads_to = victim if path.is_dir() else victim / stage / "mine"
            path.rename(self.ground.scratch / "moved")
            path.symlink_to(leads_to)
            ended = self.ground.wait(self.ground.begin(stage, folder))
            self._judge(note, ended, allowed={0, 1})
            found = {str(each.relative_to(victim)) for each in victim.rglob("*")}
            if found != {stage, f"{stage}/mine"} or (victim / stage / "mine").read_text() != "mine":
                note("silent losses", f"{replaced} led to {sorted(found)}")
            subprocess.run(["rm", "-rf", victim, self.ground.scratch / "moved"], check=True)

    @contextmanager
    def _round(self, kind: str, story: str) -> Iterator[Callable[[str, str], None]]:
        def note(bad: str, what: str) -> None:
            self.counts[bad] += 1
            self.stories.append(f"{bad}: {story}: {what}")

        self.counts[kind] += 1
        yield note

    def _judge(self, note: Callable[[str, str], None], ended: Ended, allowed: set[int]) -> None:
        if ended.hung:
            note("hangs", ended.errors[-300:])
        elif "Traceback" in ended.errors:
            note("tracebacks", ended.errors[-600:])
        elif ended.code not in allowed:
            note("crashes", f"exit status {ended.code}: {ended.errors[-300:]}")
        elif ended.code == 1 and not _sentences(ended):
            note("misled", f"no sentence: {ended.errors[-300:]}")


def _send(process: int, number: signal.Signals) -> bool:
    try:
        os.kill(process, number)
    except ProcessLookupError:
        return False
    return True


def _before_python(number: signal.Signals) -> set[int]:
    """How a process ends if the signal comes before its handlers are in place."""
    return {-number}


def _sentences(ended: Ended) -> list[str]:
    return [line for line in ended.errors.splitlines() if line.startswith("ffm: ")]


def run(campaign: Campaign, rounds: dict[str, int], seconds: float) -> None:
    """Run so many rounds of each kind, mixed, within a time."""
    end = time.monotonic() + seconds
    plan = [kind for kind, count in rounds.items() for _ in range(count)]
    campaign.chance.shuffle(plan)
    for kind in plan:
        if time.monotonic() > end:
            break
        getattr(campaign, kind)()


def main() -> None:
    """Run a campaign, and print what it counted."""
    parser = argparse.ArgumentParser(description=__doc__)
    for kind in ("kills", "workflows", "disks", "pairs", "links"):
        parser.add_argument(f"--{kind}", type=int, default=0, metavar="N")
    parser.add_argument("--seed", type=int, default=SEED)
    parser.add_argument("--seconds", type=float, default=float("inf"), help="Stop after this time.")
    given = parser.parse_args()
    pytest_configure()
    from ffm.vgpu.paths import sample

    with tempfile.TemporaryDirectory(prefix="ffm-faults-") as scratch, Server(Path(scratch)) as server:
        campaign = Campaign(Ground.prepare(sample("als"), Path(scratch), server=server), given.seed)
        rounds = {
            "kill": given.kills,
            "workflow": given.workflows,
            "disk": given.disks,
            "pair": given.pairs,
            "link": given.links,
        }
        try:
            run(campaign, rounds, given.seconds)
        finally:
            print("\n".join(campaign.stories))
            print(", ".join(f"{count} {name}" for name, count in campaign.counts.items() if name not in BAD))
            print(", ".join(f"{campaign.counts[name]} {name}" for name in BAD))
    sys.exit(any(campaign.counts[name] for name in BAD))


if __name__ == "__main__":
    main()
