"""The progress of `ffm run`: one table that changes on a terminal, otherwise one line per completed stage."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass

from rich.console import Console, ConsoleOptions, RenderResult
from rich.live import Live
from rich.text import Text

from ffm.cli.running.progress import TITLES
from ffm.cli.running.stage_events import StageEvent

USUAL_RATIOS = {"baseline": 1.01, "tracing": 1.02, "memory": 1.12, "sync-use": 1.06}
"""The ratio of a program's time in each stage to its bare time: medians over the samples of each sample's median
(`benchmarks/results/overhead.json`).
"""

BASELINE = "baseline"
KEPT = "kept from before"
SPINNER = "⠋⠙⠹⠸⠼⠴⠦⠧⠇⠏"
SPINNER_HZ = 10
TITLE_WIDTH = max(map(len, TITLES.values()))


@dataclass(slots=True)
class Stage:
    """A stage of this run and its progress."""

    began: float | None = None
    took: float | None = None
    summary: str = ""
    step: str = ""
    """What it is doing, if it says so."""


class RunScreen:
    """The progress of the run. `walls` says how long the program ran in each stage of the last measurement, if any."""

    def __init__(self, title: str, walls: Mapping[str, float], clock: Callable[[], float] = time.monotonic) -> None:
        self._title = title
        self._walls = dict(walls)
        self._clock = clock
        self._began = clock()
        self._around: float | None = None
        """Seconds of a stage beyond the program's run; taken from stage 1, for which it is known first."""
        self._stages = {name: Stage() for name in TITLES}

    @property
    def ran_nothing(self) -> bool:
        """Whether no stage had anything to do."""
        return all(stage.began is None for stage in self._stages.values())

    @property
    def completed_any(self) -> bool:
        """Whether a stage has ended."""
        return any(stage.took is not None for stage in self._stages.values())

    def take(self, event: StageEvent) -> None:
        """Note that a stage started, began a step or ended."""
        stage = self._stages[event.stage]
        stage.step = event.step
        if event.step:
            return
        if not event.ended:
            stage.began = event.at
            return
        stage.took = event.at - (event.at if stage.began is None else stage.began)
        stage.summary = event.summary
        if event.wall_s:
            self._walls[event.stage] = event.wall_s
        if event.stage == BASELINE:
            self._around = stage.took - event.wall_s

    def expected(self, name: str) -> float | None:
        """Return the seconds that a stage will take, by the last measurement or else the bare run; None if neither is
        known.
        """
        wall = self._walls.get(name)
        if wall is None and BASELINE in self._walls and name in USUAL_RATIOS:
            wall = self._walls[BASELINE] * USUAL_RATIOS[name] / USUAL_RATIOS[BASELINE]
        return None if wall is None else wall + (self._around or 0.0)

    def line(self, name: str) -> str:
        """Return what is printed about a stage that has ended, if there is no terminal."""
        stage = self._stages[name]
        return f"stage {TITLES[name]}: {stage.summary} [{stage.took or 0:.1f} s]"

    def __rich_console__(self, _console: Console, _options: ConsoleOptions) -> RenderResult:
        """Yield a line for the whole run, and one for each stage, in their current state."""
        now = self._clock()
        yield _line(f"{_clock_time(now - self._began)}  ", (self._title, "bold"))
        kept = self._kept()
        for name, title in TITLES.items():
            stage = self._stages[name]
            padded = f" {title:<{TITLE_WIDTH}} "
            if stage.took is not None:
                yield _line(("✓", "green"), f"{padded}{stage.took:6.1f} s  {stage.summary}")
            elif stage.began is not None:
                turning = SPINNER[int(now * SPINNER_HZ) % len(SPINNER)]
                doing = Text(stage.step, "dim") if stage.step else self._hope(name)
                yield _line(turning, (padded, "bold"), f"{now - stage.began:6.0f} s  ", doing)
            else:
                yield _line(" ", (padded, "dim"), " " * 10, Text(KEPT, "dim") if name in kept else self._hope(name))

    def _kept(self) -> set[str]:
        """Return the stages that had nothing to do: a later one has begun."""
        names = list(self._stages)
        later = max((place for place, name in enumerate(names) if self._stages[name].began is not None), default=0)
        return {name for name in names[:later] if self._stages[name].began is None}

    def _hope(self, name: str) -> Text:
        seconds = self.expected(name)
        return Text("" if seconds is None else f"about {seconds:.0f} s" if seconds >= 1 else "about a second", "dim")


@contextmanager
def shown(screen: RunScreen) -> Iterator[Callable[[list[StageEvent]], None]]:
    """Show a run on standard error; yields a function to be called with new events, or with none to update the
    display.
    """
    console = Console(stderr=True, highlight=False)

    def take(events: list[StageEvent]) -> None:
        for event in events:
            screen.take(event)
            if event.ended and not console.is_terminal:
                console.print(screen.line(event.stage), markup=False, soft_wrap=True)
                if event.remark:
                    console.print(event.remark, markup=False, soft_wrap=True)

    if not console.is_terminal:
        yield take
        return
    with Live(screen, console=console, refresh_per_second=10):
        yield take


def _line(*parts: str | Text | tuple[str, str]) -> Text:
    """Return a line whose end is cut off if the terminal is too narrow."""
    return Text.assemble(*parts, no_wrap=True, overflow="ellipsis")


def _clock_time(seconds: float) -> str:
    """`1:05`."""
    return f"{int(seconds) // 60}:{int(seconds) % 60:02}"
