"""Where in the program a call stack makes its CUDA call, from the names of its frames."""

from __future__ import annotations

import functools
import posixpath
import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import PurePath

from ffm.model.groups.names import DROPPED, base_name, starts_a_thread
from ffm.results.documents.stacks import Frame, Module
from ffm.results.vocabulary import PRIVATE

_CUDA_ENTRY = re.compile(r"cu(?:da)?[A-Z]\w*")
"""Names of the CUDA runtime (`cudaFree`) and driver (`cuMemFree_v2`); libraries are named `cublas…`, `cufft…`."""

_MACRO_SUFFIX = re.compile(r"(?<=\w)(_v\d+)?(_ptds|_ptsz)?$")
"""What macros in CUDA's headers append to a runtime function: a version, or a thread's own default stream."""

_CUDA_HEADER = re.compile(r"/cuda_runtime(_api)?\.h$|/crt/\w+\.h(pp)?$")
"""Headers with templates around functions of the runtime, such as `cudaMalloc<float>`."""

_CGO = re.compile(r"(^|/)(cgo-gcc-prolog|_cgo_gotypes\.go)$|(^|/)runtime/(asm_amd64\.s|cgocall\.go|proc\.go)$")
"""What Go generates for a call of C, and the functions of its runtime that lie around it."""

_LAUNCH_STUB = "__device_stub__"
"""Start of the name of the function that `nvcc` generates for each kernel. The kernel's own host function calls it."""

_RUNTIME_LIBRARY = re.compile(r"libcuda(rt)?[.-]|libstdc\+\+\.")
"""NVIDIA's runtime and driver, and the runtime of C++, which starts threads."""

_INTERPRETER = re.compile(r"(lib)?python\d")

ENDS_PYTHON = frozenset({"Py_Finalize", "Py_FinalizeEx", "_Py_Finalize"})
"""Functions of the interpreter that release what the program leaves behind."""

_PACKAGES_FOLDER = r"(site-packages|dist-packages|lib(64|32)?/python\d[\d.]*t?)/"
_PYTHON_LIBRARY = re.compile(rf"(^|/){_PACKAGES_FOLDER}|<frozen |^torch/")
"""Files that come with Python or were installed into it; a program's own are elsewhere. PyTorch's profiler names its
own without the folder of packages.
"""

_GENERATED = "<string>"
"""What Python names code that a program or a library makes while it runs, and the text of `python -c`."""

_IN_PACKAGE = re.compile(rf"(.*/)?{_PACKAGES_FOLDER}(?P<package>[^/]+)")
"""A path up to and including the last folder of packages."""

_SYSTEM_LIBRARY = re.compile(r"^/(usr/)?lib(32|64|x32)?/|^/usr/local/cuda|/targets/[^/]+/lib/")
"""Shared libraries of the system and of CUDA; a program's own are elsewhere."""

_FOREIGN_SOURCE = re.compile(
    r"^/usr/(local/)?include/|^/usr/local/cuda[^/]*/include/|/include/c\+\+/|/lib/gcc/.*/include/"
    r"|/targets/[^/]+/include/|/include/(thrust|cub|cuda/std|nv|crt|cooperative_groups)/"
    r"|/cuda_runtime(_api)?\.h$|(^|/)tmpxft_[^/]*$|(^|/)nvcc_internal_[^/]*$"
    rf"|{_CGO.pattern}"
)
"""Headers of the system, of compilers and of CUDA, wherever it is installed, and what `nvcc` and Go generate."""

_LIBRARY_FUNCTION = re.compile(r"(std|thrust|cub)::")
"""Functions of libraries of templates. `nvcc` may give code that was inlined into them a line of the file that uses
them.
"""

_LIBRARY_HEADER = re.compile(r"/c\+\+/|/libstdc\+\+|/bits/|^/usr/include/")
_OPERATOR = re.compile(r"operator (new|delete)(\[\])?")
_CONTAINER = re.compile(r"(?:[\w:&*<> ]* )?(std::(?!_|allocator)\w+)<")
"""A container's member function, such as `std::vector<float, std::allocator<float> >::resize(unsigned long)`."""

_NVCC_TEMPORARY = re.compile(r"tmpxft_[0-9a-f]+_[0-9a-f]+-\d+_(?P<stem>.+?)(?:\.compute_\w+)?\.cudafe\d*\.\w+")


@dataclass(frozen=True, slots=True)
class CallPlace:
    """A CUDA call as the programmer wrote it, and the function, file and line that make it."""

    call: str
    caller: str
    file: str
    line: int


def runtime_modules(modules: Sequence[Module]) -> frozenset[int]:
    """Return the numbers of the modules that are a runtime, or the driver, or in a Python program a Python library: no
    call of the programmer is there.
    """
    python = runs_python(modules)
    return frozenset(
        number
        for number, module in enumerate(modules)
        if _RUNTIME_LIBRARY.match(PurePath(module.path).name) or (python and _PYTHON_LIBRARY.search(module.path))
    )


def runs_python(modules: Sequence[Module]) -> bool:
    """Return whether Python is among the modules of a program."""
    return any(_INTERPRETER.match(PurePath(module.path).name) for module in modules)


def place_of_call(frames: Sequence[Frame], function: str, runtime: frozenset[int] = frozenset()) -> CallPlace:
    """Find the call in a stack (innermost frame first) that ends in a driver function.

    `runtime` contains the numbers of modules whose frames are never the caller, although their functions have no names.

    The call is the outermost frame of the CUDA runtime or driver: that is what the programmer wrote, and everything
    further in is NVIDIA's. Between that frame and the program's line there may be templates of CUDA's headers and what
    `nvcc` generates for a launch. If the stack has no such frame, because the driver function was called directly, it
    is that function.
    If a library waits through the driver's private interface, it is the library's entry. The caller is then the
    innermost frame with a known line, because a library's lines are unknown, or else the innermost frame.

    In a Python program the caller is the innermost line outside installed libraries, if there is one. What the
    interpreter releases as it ends is called by the function that ends it.
    """
    called = ["" if frame.python else _cuda_function(frame.function, frame.file) for frame in frames]
    entry = next((index for index in range(len(frames) - 1, -1, -1) if called[index]), None)
    after = _after_wrappers(frames, 0 if entry is None else entry + 1)
    own_line = _own_line(frames[after:], runtime)
    if 0 < after < len(frames):
        outside = [
            frame for frame in frames[after:] if frame.module not in runtime and not starts_a_thread(frame.function)
        ]
        caller = own_line or (outside[0] if outside else frames[after])
        call = function if entry is None else called[entry]
        return CallPlace(call, caller.function, source_file(caller.file), caller.line)
    call = called[entry] if entry is not None else function
    if not frames:
        return CallPlace(call, "", "", 0)
    own = [frame for frame in frames if not starts_a_thread(frame.function)]
    if entry is None and function in ("", PRIVATE):
        # The driver's own frames come first and have no names; the library that called it has names.
        library = next((frame.module for frame in own if frame.function and not frame.python), frames[0].module)
        call = [frame for frame in frames if frame.module == library][-1].function or function or PRIVATE
    caller = own_line or next((frame for frame in own if frame.line), frames[0])
    return CallPlace(call, caller.function, source_file(caller.file), caller.line)


@functools.lru_cache(maxsize=1 << 16)  # stacks have most of their functions in common
def _cuda_function(name: str, file: str) -> str:
    """Return the function of the CUDA runtime or driver that this is, or that its template calls; else nothing."""
    if _CUDA_HEADER.search(file):
        name = base_name(name).removesuffix(DROPPED)
    if name.startswith("cuda"):
        name = _MACRO_SUFFIX.sub("", name)
    return name if _CUDA_ENTRY.fullmatch(name) else ""


def _after_wrappers(frames: Sequence[Frame], begin: int) -> int:
    """Return the index of the first frame, from `begin` on, outside of CUDA's headers, of a generated launch, and of
    the way from Go to C.
    """
    stub = next((index for index, frame in enumerate(frames) if frame.function.startswith(_LAUNCH_STUB)), -1)
    after = max(begin, stub + 1)
    while after < len(frames) and (_CUDA_HEADER.search(frames[after].file) or _CGO.search(frames[after].file)):
        after += 1
    if 0 <= stub == after - 1 and after < len(frames):
        kernel = base_name(frames[after].function).removesuffix(DROPPED).rpartition("::")[2]
        after += bool(kernel) and kernel in frames[stub].function
    return after


def place_of_allocation(frames: Sequence[Frame], function: str) -> CallPlace:
    """Find the line of the program that allocates or frees host memory through a function of the C library.

    The call is what the programmer wrote: `malloc`, `operator new`, or the container of the C++ library around it. The
    caller is the innermost frame with a line outside the library's headers.
    """
    own = [frame for frame in frames if not starts_a_thread(frame.function)] or list(frames)
    if not own:
        return CallPlace(function, "", "", 0)
    caller = next((frame for frame in own if frame.line and not _LIBRARY_HEADER.search(frame.file)), own[0])
    inner = own[: own.index(caller)]
    operator = next((match[0] for frame in reversed(inner) if (match := _OPERATOR.match(frame.function))), function)
    containers = (_CONTAINER.match(frame.function) for frame in reversed(inner))
    container = next((match[1] for match in containers if match), "")
    return CallPlace(f"{operator} ({container})" if container else operator, caller.function, caller.file, caller.line)


def _own_line(frames: Sequence[Frame], runtime: frozenset[int]) -> Frame | None:
    """Return, for a stack with Python functions, the innermost line of the program itself, else of any Python function;
    without any, the function that ends the interpreter; None if there is none of these.
    """
    python = [frame for frame in frames if frame.python]
    if not python:
        return next((frame for frame in frames if frame.function in ENDS_PYTHON), None)
    candidates = [
        frame
        for frame in frames
        if frame.line
        and frame.module not in runtime
        and not _PYTHON_LIBRARY.search(frame.file)
        and not starts_a_thread(frame.function)
    ]
    return next(iter(_written(candidates)), python[0])


def _written(frames: list[Frame]) -> list[Frame]:
    """Return the frames without those of generated Python code, if there are others of Python."""
    written = [frame for frame in frames if not (frame.python and frame.file == _GENERATED)]
    return written if any(frame.python for frame in written) else frames


def own_frame(frames: Sequence[Frame], modules: Sequence[Module]) -> Frame | None:
    """Return the innermost frame (they come innermost first) at a line of the program's own source; None if there is
    none.

    Not its own are headers and libraries of the system, of CUDA and of Python, and functions inlined from them.
    """
    return next((frame for frame in own_frames(frames, modules) if frame.line and frame.file), None)


def own_frames(frames: Sequence[Frame], modules: Sequence[Module]) -> list[Frame]:
    """Return the frames of the program's own code, in their order, whether or not their lines are known."""
    return own_frames_outside(frames, foreign_modules(modules))


def foreign_modules(modules: Sequence[Module]) -> frozenset[int]:
    """Return the numbers of modules that are not the program's own."""
    return runtime_modules(modules) | {
        number
        for number, module in enumerate(modules)
        if _SYSTEM_LIBRARY.search(module.path) or _INTERPRETER.match(PurePath(module.path).name)
    }


def own_frames_outside(frames: Sequence[Frame], foreign: frozenset[int]) -> list[Frame]:
    """As `own_frames`, with what `foreign_modules` returns."""
    return _written([frame for frame in frames if _is_own(frame, foreign)])


def _is_own(frame: Frame, foreign: frozenset[int]) -> bool:
    if starts_a_thread(frame.function):
        return False
    path = posixpath.normpath(frame.file)
    if _PYTHON_LIBRARY.search(path):
        return False
    if frame.python:
        return True
    library = _LIBRARY_FUNCTION.match(base_name(frame.function))
    return frame.module not in foreign and library is None and not _FOREIGN_SOURCE.search(path)


def python_package(file: str) -> str:
    """Return the top-level package or module of a file that comes with Python or was installed into it; empty if it is
    no such file, or none at all, as that of an import (`<frozen importlib._bootstrap>`).
    """
    match = _IN_PACKAGE.match(file)
    return "" if match is None else match["package"].removesuffix(".py")


def source_file(path: str) -> str:
    """Return the file that a programmer knows: `nvcc` names its temporary `tmpxft_…_als.cudafe1.cpp`, which is
    `als.cu`.
    """
    match = _NVCC_TEMPORARY.fullmatch(PurePath(path).name)
    return f"{match['stem']}.cu" if match else path
