"""What the gate found, for other programs: annotations of GitHub, SARIF, JUnit's XML."""

from __future__ import annotations

from pathlib import Path
from typing import Any
from xml.etree import ElementTree

from ffm.report.check import CheckView, Violation, describe
from ffm.report.formats.sarif import location, log
from ffm.report.numbers import Scale

RULES = {
    "new": "Synchronizations or transfers that are neither needed, nor allowed, nor known",
    "wait": "Waits that are neither allowed nor known",
    "count": "More calls than the allow-list allows",
    "limit": "A limit is exceeded",
}


def github(view: CheckView) -> str:
    """Return workflow commands of GitHub Actions, which it shows at the lines of a change."""
    scale = Scale(view.wall_s)
    lines = [_annotation("error", describe(one, scale), one) for one in view.violations]
    lines += [_annotation("error", limit.text) for limit in view.exceeded]
    lines += [_annotation("warning", text) for text in view.warnings]
    return "".join(line + "\n" for line in lines)


def sarif(view: CheckView, root: Path) -> dict[str, Any]:
    """Return the SARIF log; paths below `root` are relative to it."""
    scale = Scale(view.wall_s)
    results = [
        {
            "ruleId": f"ffm/{one.rule}",
            "level": "error",
            "message": {"text": describe(one, scale)},
            "locations": [location(one.file, one.line, root)] if one.line else [],
            "properties": {"thread": one.thread, "occurrences": one.count, "benefitSeconds": one.seconds},
        }
        for one in view.violations
    ]
    results += [{"ruleId": "ffm/limit", "level": "error", "message": {"text": limit.text}} for limit in view.exceeded]
    used = {str(result["ruleId"]).removeprefix("ffm/") for result in results}
    return log({f"ffm/{rule}": text for rule, text in RULES.items() if rule in used}, results)


def junit(view: CheckView) -> bytes:
    """Return JUnit's XML: a test case for each violation and each exceeded limit, or one that passed."""
    scale = Scale(view.wall_s)
    failures = [
        (f"{one.place} {one.call} on thread {one.thread}", describe(one, scale), one) for one in view.violations
    ]
    limits = [(limit.limit, limit.text) for limit in view.exceeded]
    total = len(failures) + len(limits)
    counts = {"tests": str(max(total, 1)), "failures": str(total), "errors": "0"}
    suites = ElementTree.Element("testsuites", counts)
    suite = ElementTree.SubElement(suites, "testsuite", {"name": f"ffm check {view.application}", **counts})
    for name, text, one in failures:
        case = ElementTree.SubElement(suite, "testcase", {"classname": "ffm.check", "name": name})
        if one.line:
            case.set("file", one.place.rpartition(":")[0])
            case.set("line", str(one.line))
        ElementTree.SubElement(case, "failure", {"message": text, "type": one.rule})
    for name, text in limits:
        case = ElementTree.SubElement(suite, "testcase", {"classname": "ffm.check", "name": name})
        ElementTree.SubElement(case, "failure", {"message": text, "type": "limit"})
    if not total:
        ElementTree.SubElement(suite, "testcase", {"classname": "ffm.check", "name": view.application})
    if view.warnings:
        ElementTree.SubElement(suite, "system-out").text = "\n".join(view.warnings)
    ElementTree.indent(suites)
    return bytes(ElementTree.tostring(suites, encoding="utf-8", xml_declaration=True)) + b"\n"


def _annotation(level: str, message: str, at: Violation | None = None) -> str:
    properties = "title=ffm check"
    if at is not None and at.line:
        properties = f"file={escaped(at.place.rpartition(':')[0], ':,')},line={at.line},{properties}"
    return f"::{level} {properties}::{escaped(message)}"


def escaped(text: str, further: str = "") -> str:
    """Escape what ends a command or, in its properties, a value."""
    for letter in "%\r\n" + further:
        text = text.replace(letter, f"%{ord(letter):02X}")
    return text
