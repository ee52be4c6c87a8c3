"""The truth about each CUDA call of a sample that can wait or transfer, read from marks in its source.

A mark is a comment on its own line, `// problem: REASON`, `// needed: REASON` or `// once: REASON` (`#` in Python),
above the CUDA call to which it applies. A problem is corrected in the twin `NAME_fixed`, or in the one that the mark
names in brackets: `// problem: REASON [TWIN]`. `python -m ffm.vgpu.samples.truth` writes each `NAME.truth.toml` from
the marks in `NAME/`, so that its line numbers cannot become outdated; a test compares the two.
"""

import re
from dataclasses import dataclass
from pathlib import Path

from ffm.errors import FfmError

HERE = Path(__file__).parent
SUFFIXES = (".cu", ".h", ".cpp", ".py")


@dataclass(frozen=True, slots=True)
class Reason:
    """What a mark means. `planted`: worth a line in a report, which must name exactly these."""

    synchronization: str  # "unnecessary", "conditionally unnecessary" or "required"
    transfer: str  # "none", "required" or "duplicate"
    planted: bool
    why: str


REASONS = {
    "problem: repeated upload": Reason(
        "unnecessary",
        "duplicate",
        True,
        "the array never changes: only the first upload of its bytes was needed",
    ),
    "problem: needless synchronization": Reason(
        "unnecessary",
        "none",
        True,
        "the CPU reads and writes nothing that the work before it touches until a later wait covers that work",
    ),
    "problem: free in the loop": Reason(
        "unnecessary",
        "none",
        True,
        "the buffer is allocated again in the next iteration: it could be kept",
    ),
    "problem: free of a temporary": Reason(
        "unnecessary",
        "none",
        True,
        "the next call allocates a temporary of this size again: it could be kept",
    ),
    "problem: library waits for each result": Reason(
        "conditionally unnecessary",
        "required",
        True,
        "the library waits for its upload and its download, but all results are used only after the loop",
    ),
    "problem: set of managed memory": Reason(
        "unnecessary",
        "none",
        True,
        "the memory is used by the CPU alone until the next wait: the CPU can clear it without waiting",
    ),
    "problem: result fetched in each step": Reason(
        "conditionally unnecessary",
        "required",
        True,
        "the results are read only once in many steps: one synchronization before that covers all of them",
    ),
    "needed: source overwritten": Reason(
        "required",
        "none",
        False,
        "the CPU overwrites the source of an earlier upload after the call",
    ),
    "needed: orders streams": Reason(
        "required",
        "none",
        False,
        "work on another stream follows, which nothing else orders after this: an event would do without waiting",
    ),
    "needed: status that hardly changes": Reason(
        "required",
        "none",
        False,
        "the CPU reads a status word at once; it says the same in all steps but the first, so that a program written "
        "otherwise could read it at its next wait",
    ),
    "needed: upload that changes": Reason(
        "required",
        "required",
        False,
        "the CPU overwrites the source directly after the copy, and its bytes differ in each iteration",
    ),
    "needed: result used at once": Reason(
        "required",
        "required",
        False,
        "the CPU reads what was fetched directly after the call",
    ),
    "needed: result used after the next wait": Reason(
        "conditionally unnecessary",
        "required",
        False,
        "the CPU reads what was fetched, but only after the next wait, which covers this transfer too",
    ),
    "once: upload": Reason(
        "unnecessary",
        "required",
        False,
        "the only upload of these bytes; nobody touches the source afterwards, but it happens once",
    ),
    "once: replaced by a larger block": Reason(
        "unnecessary",
        "none",
        False,
        "the GPU is idle: there is nothing to wait for, and it happens in the first step only",
    ),
    "once: teardown": Reason(
        "unnecessary",
        "none",
        False,
        "the GPU is idle and the program ends: there is nothing to wait for, but it happens once",
    ),
}

_MARK = re.compile(r"\s*(?://|#) ((?:problem|needed|once): [^\[]*?)(?: \[(\w+)\])?")
_CALL = re.compile(r"\b((?:cuda|cu|vblas|vfft)[A-Z]\w*)\((.*)")
_FUNCTION = re.compile(r"(?:[A-Za-z_][\w:<> ]*?[ *&]|\s*def )(\w+)\(")


@dataclass(frozen=True, slots=True)
class CallSite:
    """One CUDA call as written: `caller` names the calls of its function, for a function in another file."""

    file: str
    line: int
    call: str
    function: str
    callers: tuple[str, ...]
    allocated_at: int | None  # line of the matching cudaMalloc, for cudaFree
    reason: Reason
    twin: str | None  # the corrected program, if there is one


class UnreadableMarksError(FfmError):
    """A mark is unknown, or no CUDA call follows it."""

    help = "Correct the mark: `ffm/vgpu/samples/truth.py` lists them."


def call_sites(folder: Path) -> list[CallSite]:
    """Return all marked call sites of the sources in `folder`, by file and line; the folder has the sample's name.

    Raises UnreadableMarksError for a mark that is unknown or is not followed by a call.
    """
    files = sorted(path for path in folder.iterdir() if path.suffix in SUFFIXES)
    sources = {path.name: path.read_text().splitlines() for path in files}
    return [site for name in sources for site in _sites_of(name, sources, f"{folder.name}_fixed")]


def _sites_of(name: str, sources: dict[str, list[str]], usual_twin: str) -> list[CallSite]:
    lines = sources[name]
    sites = []
    function = ""
    for index, line in enumerate(lines):
        if (start := _FUNCTION.match(line)) and not line.endswith(";"):
            function = start[1]
        mark = _MARK.fullmatch(line)
        if mark is None:
            continue
        call = _CALL.search(lines[index + 1]) if index + 1 < len(lines) else None
        if mark[1] not in REASONS or call is None:
            raise UnreadableMarksError(f"{name}:{index + 1}: '{mark[1]}' is unknown or stands above no CUDA call")
        sites.append(
            CallSite(
                file=name,
                line=index + 2,
                call=call[1],
                function=function,
                callers=_callers(function, name, sources),
                allocated_at=_allocation(lines[:index], call[2]) if call[1] == "cudaFree" else None,
                reason=REASONS[mark[1]],
                twin=mark[2] or (usual_twin if REASONS[mark[1]].planted else None),
            )
        )
    return sites


def _callers(function: str, file: str, sources: dict[str, list[str]]) -> tuple[str, ...]:
    """Return where the other CUDA or Python sources call `function`, as `file:line`; headers only declare it."""
    return tuple(
        f"{name}:{number}"
        for name, lines in sources.items()
        if name != file and not name.endswith((".h", ".cpp"))
        for number, line in enumerate(lines, 1)
        if re.search(rf"\b{function}\(", line)
    )


def _allocation(lines: list[str], arguments: str) -> int | None:
    """Return the line of the last cudaMalloc before it for the pointer that `arguments` starts with."""
    pointer = re.escape(arguments.partition(")")[0])
    found = [number for number, line in enumerate(lines, 1) if re.search(rf"\bcudaMalloc\(.*&{pointer},", line)]
    return found[-1] if found else None


def as_toml(sites: list[CallSite]) -> str:
    """Return the sites as a TOML document with one `[[call_site]]` each."""
    parts = [
        "# Written by `python -m ffm.vgpu.samples.truth` from the marks in the source; do not edit.\n"
        "# planted: a report must name exactly these. callers: a call site of its own for each of them. twin: the\n"
        "# program in which it is corrected.\n"
    ]
    for site in sites:
        callers = ", ".join(f'"{caller}"' for caller in site.callers)
        allocated = "" if site.allocated_at is None else f"allocated_at = {site.allocated_at}\n"
        parts.append(
            "[[call_site]]\n"
            f'file = "{site.file}"\nline = {site.line}\ncall = "{site.call}"\nfunction = "{site.function}"\n'
            f"callers = [{callers}]\n{allocated}"
            f'synchronization = "{site.reason.synchronization}"\ntransfer = "{site.reason.transfer}"\n'
            f"planted = {str(site.reason.planted).lower()}\n"
            + ("" if site.twin is None else f'twin = "{site.twin}"\n')
            + f'why = "{site.reason.why}"\n'
        )
    return "\n".join(parts)


def sample_folders() -> list[Path]:
    """Return the folders of samples, by name: those with a configuration of the virtual GPU next to them."""
    return sorted(path for path in HERE.iterdir() if path.with_name(f"{path.name}.vgpu").is_file())


if __name__ == "__main__":
    for sample in sample_folders():
        sample.with_name(f"{sample.name}.truth.toml").write_text(as_toml(call_sites(sample)))
