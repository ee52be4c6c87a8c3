"""What a change brought, for other programs: annotations of GitHub, SARIF, JUnit's XML.

New sites are errors, and sites with more problem calls than before are warnings.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

from ffm.report.compare import CompareView, SiteChange
from ffm.report.formats.check import escaped
from ffm.report.formats.sarif import location, log
from ffm.report.names import below
from ffm.report.numbers import Scale
from ffm.report.terminal.compare import describe, summary

RULES = {
    "come": "Synchronizations or transfers that were not there before, and are not needed, or not proved to be needed",
    "more": "More such calls than before",
}


def github(view: CompareView, root: Path) -> str:
    """Return workflow commands of GitHub Actions, which it shows at the lines of a change; files below `root`."""
    lines = [f"::notice title=ffm compare::{escaped(summary(view))}"]
    for rule, one, text in _worse(view):
        level = "error" if rule == "come" else "warning"
        at = f"file={escaped(below(one.file, root), ':,')},line={one.line}," if one.line else ""
        lines.append(f"::{level} {at}title=ffm compare::{escaped(text)}")
    return "".join(line + "\n" for line in lines)


def sarif(view: CompareView, root: Path) -> dict[str, Any]:
    """Return the SARIF log; paths below `root` are relative to it."""
    results = [
        {
            "ruleId": f"ffm/{rule}",
            "level": "error" if rule == "come" else "warning",
            "message": {"text": text},
            "locations": [location(one.file, one.line, root)] if one.line else [],
            "properties": {"occurrences": one.new_count, "benefitSeconds": one.new_seconds},
        }
        for rule, one, text in _worse(view)
    ]
    used = {rule for rule, *_ in _worse(view)}
    return log({f"ffm/{rule}": text for rule, text in RULES.items() if rule in used}, results)


def junit(view: CompareView) -> bytes:
    """Return JUnit's XML: a test case for each site that is worse than before, or one that passed."""
    worse = list(_worse(view))
    counts = {"tests": str(max(len(worse), 1)), "failures": str(len(worse)), "errors": "0"}
    suites = ElementTree.Element("testsuites", counts)
    suite = ElementTree.SubElement(suites, "testsuite", {"name": f"ffm compare {view.new}", **counts})
    for rule, one, text in worse:
        name = {"classname": "ffm.compare", "name": f"{one.place} {one.call}"}
        case = ElementTree.SubElement(suite, "testcase", name)
        ElementTree.SubElement(case, "failure", {"message": text, "type": rule})
    if not worse:
        ElementTree.SubElement(suite, "testcase", {"classname": "ffm.compare", "name": view.new})
    ElementTree.SubElement(suite, "system-out").text = summary(view)
    ElementTree.indent(suites)
    return bytes(ElementTree.tostring(suites, encoding="utf-8", xml_declaration=True)) + b"\n"


def _worse(view: CompareView) -> Iterator[tuple[str, SiteChange, str]]:
    """Yield the sites that are worse than before, each with its rule and a sentence."""
    scale = Scale(max(*view.old_s, *view.new_s))
    for one in view.come:
        yield "come", one, describe(one, scale)
    for one in view.changed:
        if one.new_count > one.old_count:
            yield "more", one, describe(one, scale)
