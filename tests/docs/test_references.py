"""References in sources and pages to the documentation, and to numbers of the dissertation, resolve.

Sphinx checks the links between the pages (`make docs`); this checks those that it does not read.
"""

from __future__ import annotations

import re
import subprocess
from functools import cache
from pathlib import Path

import pytest

from tests.conftest import ROOT

pytestmark = pytest.mark.skipif(not (ROOT / ".git").exists(), reason="not a checkout: git lists no files")

PAGE = re.compile(r"\bdocs/([\w-]+\.md)(?:#([\w-]+))?")
LINK = re.compile(r"\]\((?!https?:)([^)#\s]*)(?:#([\w-]+))?\)")
HEADING = re.compile(r"^#+ (.+)$", re.MULTILINE)
FENCE = re.compile(r"^```.*?^```", re.MULTILINE | re.DOTALL)
DISSERTATION = re.compile(
    r"dissertation(?:'s)?,? ((?:(?:chapter|Figures?|Table) )?\d+(?:\.\d+)*(?:(?:, | and |; |, Figure )\d+(?:\.\d+)+)*)",
    re.IGNORECASE,
)
NUMBER = re.compile(r"\d+(?:\.\d+)*")


@cache
def tracked() -> dict[Path, str]:
    """The text files of the checkout, by their paths from its root."""
    listed = subprocess.run(["git", "ls-files"], cwd=ROOT, capture_output=True, text=True, check=True).stdout
    texts = {}
    for name in listed.splitlines():
        path = ROOT / name
        if path.is_file() and path.suffix in (".py", ".c", ".h", ".cpp", ".cu", ".js", ".md", ".toml", ".txt"):
            texts[Path(name)] = path.read_text(encoding="utf-8")
    return texts


def anchors(page: Path) -> set[str]:
    """Return the anchors of a page's headings, as GitHub and MyST generate them."""
    text = FENCE.sub("", (ROOT / page).read_text(encoding="utf-8"))
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in HEADING.findall(text)}


def missing(page: Path, anchor: str) -> bool:
    return not (ROOT / page).exists() or (bool(anchor) and anchor not in anchors(page))


def test_every_page_that_a_source_names_is_there_with_its_anchor() -> None:
    named = [
        (source, match[0])
        for source, text in tracked().items()
        for match in PAGE.finditer(text)
        if missing(Path("docs") / match[1], match[2] or "")
    ]
    assert named == []


def test_every_link_of_a_page_leads_to_a_file_and_an_anchor_of_it() -> None:
    broken = [
        (page, match[0])
        for page, text in tracked().items()
        if page.suffix == ".md"
        for match in LINK.finditer(FENCE.sub("", text))
        if missing(page.parent / match[1] if match[1] else page, match[2] or "")
    ]
    assert broken == []


def test_no_source_cites_a_page_that_is_not_in_the_repository() -> None:
    assert [source for source, text in tracked().items() if re.search(r"\bdesign, section \d", text, re.I)] == []


def test_every_number_of_the_dissertation_that_is_cited_stands_among_the_references() -> None:
    rows = re.findall(r"^\| ([^|]+) \|", (ROOT / "docs" / "references.md").read_text(), re.MULTILINE)
    known = {number for row in rows for number in NUMBER.findall(row)}
    cited = {
        (source, number)
        for source, text in tracked().items()
        for match in DISSERTATION.finditer(re.sub(r"\s+(?:\* |# )?", " ", text))
        for number in NUMBER.findall(match[1])
    }
    assert len(cited) > 30
    assert sorted((source, number) for source, number in cited if number not in known) == []
