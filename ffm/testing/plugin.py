"""A plugin of pytest: `@pytest.mark.gpu_waits(max=3)` fails a test that waits for the GPU more often, on any thread.
The fixture `gpu_waits` does so for parts of a test.

Such a test runs in a process of its own, which quick mode traces; its reports are passed on. Nothing else changes, and
nothing of ffm is imported without such a test.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

import pytest

from ffm.testing.blocks import GpuWaits, is_count, noting_blocks, read_blocks

MARKER = "gpu_waits"
REPORTS = "FFM_GPU_WAITS_REPORTS"
"""In the traced process: the file for its reports, one JSON object a line."""
BLOCKS = ".blocks"
"""Appended to that: the file for the blocks that the fixture limits."""


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add the option that switches the tracing off."""
    group = parser.getgroup("ffm")
    group.addoption("--no-gpu-waits", action="store_true", help=f"run tests with the marker `{MARKER}` untraced")


def pytest_configure(config: pytest.Config) -> None:
    """Say what the marker means."""
    config.addinivalue_line(
        "markers",
        f"{MARKER}(max): trace the test by ffm, and fail it if a thread waits for the GPU more than max times",
    )


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_protocol(item: pytest.Item) -> bool | None:
    """Run a marked test in a traced process."""
    marker = item.get_closest_marker(MARKER)
    wanted = marker is not None or MARKER in getattr(item, "fixturenames", ())
    if not wanted or REPORTS in os.environ or item.config.getoption("no_gpu_waits"):
        return None
    item.ihook.pytest_runtest_logstart(nodeid=item.nodeid, location=item.location)
    for report in _reports(item, marker):
        item.ihook.pytest_runtest_logreport(report=report)
    item.ihook.pytest_runtest_logfinish(nodeid=item.nodeid, location=item.location)
    return True


@pytest.fixture
def gpu_waits() -> GpuWaits:
    """Limit how often each thread may wait for the GPU in a block: `with gpu_waits(max=3): model.step(batch)`."""
    reports = os.environ.get(REPORTS)
    return noting_blocks(None if reports is None else Path(reports + BLOCKS), _calling_line)


def _calling_line() -> str:
    frame = sys._getframe(2)
    return f"{Path(frame.f_code.co_filename).name}:{frame.f_lineno}"


class _Recorder:
    """Writes the reports of the traced process."""

    def __init__(self, config: pytest.Config, path: Path) -> None:
        self._config, self._path = config, path

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Append a report."""
        content = self._config.hook.pytest_report_to_serializable(config=self._config, report=report)
        with self._path.open("a") as file:
            file.write(json.dumps(content) + "\n")


def pytest_sessionstart(session: pytest.Session) -> None:
    """In the traced process, record the reports."""
    if path := os.environ.get(REPORTS):
        session.config.pluginmanager.register(_Recorder(session.config, Path(path)), "ffm-recorder")


def _reports(item: pytest.Item, marker: pytest.Mark | None) -> list[pytest.TestReport]:
    most = None if marker is None else marker.kwargs.get("max")
    if marker is not None and (marker.args or set(marker.kwargs) != {"max"} or not is_count(most)):
        return [_failure(item, f"write the marker as `{MARKER}(max=3)`: it takes a number of waits, and nothing else.")]
    with tempfile.TemporaryDirectory(prefix="ffm-gpu-waits-") as folder:
        reports, said = _traced(item, Path(folder))
        called = next((report for report in reports if report.when == "call"), None)
        if not reports:
            return [_failure(item, said)]
        if called is None or not called.passed:
            return reports
        wrong = said or _waits(item, Path(folder), most)
        if wrong:
            called.outcome = "failed"
            called.longrepr = wrong
        return reports


def _traced(item: pytest.Item, folder: Path) -> tuple[list[pytest.TestReport], str]:
    """Run the test in a traced process; return its reports, and why it could not be traced, or nothing."""
    written = folder / "reports"
    done = subprocess.run(
        [sys.executable, "-m", "ffm", "run", "--quick", "--accept-status", "1", "--results", str(folder / "results"),
         "--", sys.executable, "-m", "pytest", *_options(item.config), item.nodeid],
        env={**os.environ, REPORTS: str(written)},
        cwd=item.config.rootpath,
        capture_output=True,
        text=True,
        check=False,
    )  # fmt: skip
    lines = written.read_text().splitlines() if written.exists() else []
    reports = [_report(item.config, json.loads(line)) for line in lines]
    said = [line for line in done.stderr.splitlines() if line.startswith("ffm: ")]
    if done.returncode == 0:
        return reports, ""
    return reports, said[-1] if said else f"the test could not be traced: {done.stderr.strip()[-500:]}"


def _report(config: pytest.Config, content: dict[str, Any]) -> pytest.TestReport:
    """Return a report from its JSON, which has lists where pytest expects tuples."""
    report: pytest.TestReport = config.hook.pytest_report_from_serializable(config=config, data=content)
    report.location = (report.location[0], report.location[1], report.location[2])
    if isinstance(report.longrepr, list):  # why it was skipped
        file, line, reason = report.longrepr
        report.longrepr = (file, line, reason)
    return report


def _options(config: pytest.Config) -> list[str]:
    """Return the options with which the traced process finds the same test, and runs it by itself."""
    given = [*map(str, config.invocation_params.args)]
    plugins = [
        word
        for place, one in enumerate(given)
        if one.startswith("-p")
        for word in ([one, *given[place + 1 : place + 2]] if one == "-p" else [one])
    ]
    options = [*plugins, "-p", "no:cacheprovider", "--rootdir", str(config.rootpath)]
    if config.inipath is not None:
        options += ["-c", str(config.inipath)]
    if config.pluginmanager.has_plugin("xdist"):
        options += ["-n", "0"]
    return options


def _waits(item: pytest.Item, folder: Path, most: int | None) -> str:
    """Return which waits are too many, or why they could not be counted; otherwise nothing.

    `most` is what the marker says of the whole test, if it has one.
    """
    from ffm.errors import FfmError
    from ffm.gate.rules_file import read_rules
    from ffm.results.stored import open_results
    from ffm.testing.traced import starts_of_calls
    from ffm.testing.waits import too_many, waits_of_test, waits_within

    name: Any = getattr(item, "originalname", None) or item.name
    try:
        rules, _ = read_rules(None, item.config.rootpath)
        results, blocks = open_results(folder / "results"), read_blocks(folder / f"reports{BLOCKS}")
        wrong = [] if most is None else [too_many(waits_of_test(results, item.path, name, rules), most)]
        starts = starts_of_calls(folder / "results") if blocks else None
        for block in blocks:
            if starts is not None:
                found = waits_within(results, starts, block.begin, block.end, rules)
                wrong.append(too_many(found, block.most, block.where))
        return "\n".join(filter(None, wrong))
    except FfmError as error:
        return f"ffm: {error}"


def _failure(item: pytest.Item, text: str) -> pytest.TestReport:
    return pytest.TestReport(item.nodeid, item.location, {}, "failed", text, "call")
