"""Changes are described in the terms of the package through which a program calls the driver."""

from __future__ import annotations

from dataclasses import replace

import msgspec
import orjson
import pytest

from ffm.report.frameworks import (
    CUPY,
    JAX,
    NUMBA,
    PYCUDA,
    PYTHON,
    TORCH,
    WARP,
    Framework,
    PackageCall,
    framework_of,
    framework_of_site,
    in_copy,
    package_call,
)
from ffm.report.kept.python_waits import FetchingWaits, SendingWaits, fetching_advice, sending_advice
from ffm.report.numbers import Scale
from ffm.report.remedies.advice import identify_remedies
from ffm.report.remedies.problem_sites import problem_sites
from ffm.results.documents.site import DownloadUse, Verdict
from ffm.results.documents.stacks import Frame, Module, Stack
from ffm.results.places import place
from ffm.results.vocabulary import Because
from tests.report.sample_analysis import sample_analysis
from tests.report.test_advice import EXPLICIT, FREE, PAGEABLE, TRANSFER, told


@pytest.mark.parametrize(
    ("files", "framework"),
    [
        (["/env/lib/python3.12/site-packages/torch/cuda/__init__.py", "/home/me/train.py"], TORCH),
        (["/env/lib/python3.12/site-packages/cupy/_creation/basic.py"], CUPY),
        (["/env/site-packages/numba_cuda/numba/cuda/dispatcher.py", "/env/site-packages/torch/a.py"], NUMBA),
        (["/usr/lib/libcuda.so.1", "/env/site-packages/torch/lib/libtorch_cuda.so", "/home/me/train.py"], TORCH),
        (["/env/site-packages/pycuda/_driver.so", "/home/me/filter.py"], PYCUDA),
        (["/env/site-packages/warp/bin/warp.so", "/home/me/cloth.py"], WARP),
        (["torch/nn/modules/linear.py"], TORCH),  # as PyTorch's profiler has it
        (["/home/me/torch.py"], None),
        (["/home/me/torch/train.py"], None),
        (["/envs/numba/lib/python3.12/site-packages/cuda/bindings/driver.so", "/home/me/train.py"], None),
        ([""], None),
    ],
)
def test_the_package_is_known_by_the_files_on_the_stack(files: list[str], framework: Framework | None) -> None:
    assert framework_of(files) is framework


@pytest.mark.parametrize("framework", [TORCH, CUPY, NUMBA, PYCUDA, WARP, PYTHON])
def test_a_copy_is_made_asynchronous_in_the_packages_words(framework: Framework) -> None:
    (remedy,) = identify_remedies([replace(TRANSFER, memory=(PAGEABLE,), framework=framework)])
    assert remedy.steps[:2] == (framework.asynchronous, framework.pinned)
    assert not any("malloc" in step.replace("cuMemAllocHost", "") for step in remedy.steps)


def test_values_fetched_too_early_are_kept_on_the_gpu() -> None:
    early = replace(TRANSFER, unnecessary=0, misplaced=7, framework=TORCH)
    (remedy,) = identify_remedies([early])
    assert "Keep the values on the GPU" in remedy.steps[0]
    assert (remedy.occurrences, remedy.of) == (7, 10)


def test_values_fetched_for_later_are_kept_on_the_gpu() -> None:
    later = replace(TRANSFER, keep=(9,), downloads=True, framework=CUPY)
    assert "Keep the values on the GPU" in identify_remedies([later])[0].steps[0]


@pytest.mark.parametrize("framework", [TORCH, CUPY, NUMBA, JAX, PYCUDA, WARP, PYTHON])
@pytest.mark.parametrize("keep", [(), (9,)])
def test_a_wait_is_left_out_in_the_packages_words(framework: Framework, keep: tuple[int, ...]) -> None:
    (remedy,) = identify_remedies([replace(EXPLICIT, keep=keep, framework=framework)])
    assert framework.waits in remedy.steps[0]
    assert framework.order in remedy.steps[1]
    assert not any("cudaEventRecord" in step for step in remedy.steps)


def test_what_waits_on_the_way_is_no_means_of_ordering_streams() -> None:
    (remedy,) = identify_remedies([replace(EXPLICIT, call="cuLibraryUnload", kind="other", framework=TORCH)])
    assert remedy.steps == (
        "In no run did anything rely on the wait in cuLibraryUnload: make the call where the GPU has no work, or leave "
        "it out.",
    )


@pytest.mark.parametrize("framework", [TORCH, CUPY, NUMBA, JAX, PYCUDA, WARP, PYTHON])
def test_memory_is_kept_in_the_packages_words(framework: Framework) -> None:
    (remedy,) = identify_remedies([replace(FREE, framework=framework)])
    assert remedy.steps == (framework.memory,)
    assert "cudaMallocAsync" not in framework.memory


def test_values_that_a_loop_fetches_stay_on_the_gpu_in_the_words_of_each_package() -> None:
    """Each package once, however many sites it fetches at."""
    where = place(sample_analysis(), 0)
    packages = [TORCH, CUPY, NUMBA, JAX, PYCUDA, WARP, PYTHON]
    waits = [FetchingWaits(where, 400, 400, 1.0, 0.0, 2.0, True, one.name) for one in (*packages, TORCH)]
    said = fetching_advice(waits)
    for package in packages:
        assert said.count(f"In {package.name or 'Python'}: {package.kept_there}") == 1
    assert CUPY.kept_there not in fetching_advice(waits[:1])
    assert b'"package":"PyTorch"' in orjson.dumps(waits[0]) and b"loss.detach()" not in orjson.dumps(waits[0])
    assert "counts all waits for the same values" in said, "the screen of the site counts only its own"


@pytest.mark.parametrize("pageable", [True, False])
def test_uploads_need_not_wait_in_the_words_of_each_package(pageable: bool) -> None:
    where = place(sample_analysis(), 0)
    packages = [TORCH, CUPY, NUMBA, JAX, PYCUDA, WARP, PYTHON]
    waits = [SendingWaits(where, 99, 100, 1.0, 0.0, 2.0, pageable, one.name) for one in packages]
    said = sending_advice(waits)
    for package in packages:
        assert said.count(f"In {package.name or 'Python'}: {package.sent_ahead}") == 1
    assert "non_blocking=True" in sending_advice(waits[:1])
    memory = "pageable" if pageable else "pinned"
    assert f"99 of 100 calls wait for an upload from {memory} memory" in waits[0].sentence(Scale(10.0))


def test_python_has_no_const() -> None:
    (remedy,) = identify_remedies([replace(TRANSFER, repeat=9, framework=TORCH)])
    assert not any("const" in step for step in remedy.steps)


def test_a_library_on_the_stack_tells_the_package() -> None:
    """A tensor's own methods are no Python functions."""
    paths = ["/usr/lib/libcuda.so.1", "/env/site-packages/torch/lib/libtorch_cuda.so"]
    frames = [Frame(module=0, offset=1), Frame(module=1, offset=1)]
    script = Frame(module=0, offset=0, function="step", file="/home/me/train.py", line=7, python=True)
    analysis = sample_analysis()
    changed = msgspec.structs.replace(
        analysis,
        modules=[Module(path=path, build_id="") for path in paths],
        stacks=[Stack(key="0" * 32, frames=[*frames, script]), Stack(key="1" * 32, frames=frames)],
    )
    sites = [msgspec.structs.replace(analysis.sites[0], stack=stack) for stack in (0, 1)]
    assert [framework_of_site(changed, site) for site in sites] == [TORCH, None]
    python = [*changed.modules, Module(path="/usr/bin/python3.12", build_id="")]
    with_python = msgspec.structs.replace(changed, modules=python)
    assert [framework_of_site(with_python, site) for site in sites] == [TORCH, TORCH], "on a thread of its own"
    own = Frame(module=len(python), offset=1, function="run", file="/home/me/main.cpp", line=7)
    embeds = msgspec.structs.replace(
        with_python,
        modules=[*python, Module(path="/home/me/app", build_id="")],
        stacks=[Stack(key="2" * 32, frames=[*frames, own])],
    )
    assert framework_of_site(embeds, sites[0]) is None, "a program that embeds Python"


def test_what_a_package_does_on_its_own_thread_is_said_to_be_so() -> None:
    (remedy,) = identify_remedies([replace(TRANSFER, framework=TORCH, own_thread=True)])
    assert remedy.steps[0].startswith("PyTorch makes the call on a thread of its own")


def _python(function: str, file: str) -> Frame:
    return Frame(module=0, offset=0, function=function, file=file, line=7, python=True)


PACKAGE = "/env/lib/python3.12/site-packages/torch/cuda/graphs.py"


@pytest.mark.parametrize(
    ("inner", "function"),
    [
        ([_python("synchronize", PACKAGE), _python("graph.__enter__", PACKAGE)], "graph.__enter__"),
        ([_python("AdamW.step", PACKAGE), _python("hook.<locals>.wrapper", PACKAGE)], "AdamW.step"),
        (
            [_python("synchronize", PACKAGE), _python("enter_context", "/usr/lib/python3.12/contextlib.py")],
            "synchronize",
        ),
        ([_python("wrap.<locals>.function_call", PACKAGE)], "function_call"),
        ([], ""),
    ],
    ids=["its own", "decorated", "through Python's library", "inside another", "compiled"],
)
def test_the_function_of_a_package_is_the_one_that_the_program_calls(inner: list[Frame], function: str) -> None:
    frames = [Frame(module=1, offset=1, function="cudaStreamSynchronize"), *inner]
    analysis = sample_analysis()
    stacks = [
        msgspec.structs.replace(stack, frames=[*frames, _python("main", "/home/me/train.py")])
        for stack in analysis.stacks
    ]
    changed = msgspec.structs.replace(analysis, stacks=stacks)
    assert package_call(changed, changed.sites[0]) == (PackageCall("PyTorch", function) if function else None)


def test_a_package_that_is_not_known_is_named_by_its_folder() -> None:
    called = _python("Field.from_numpy", "/env/lib/python3.12/site-packages/fields/core.py")
    frames = [Frame(module=1, offset=1, function="cuStreamSynchronize"), called, _python("main", "/home/me/a.py")]
    analysis = sample_analysis()
    stacks = [msgspec.structs.replace(stack, frames=frames) for stack in analysis.stacks]
    changed = msgspec.structs.replace(analysis, stacks=stacks)
    found = package_call(changed, changed.sites[0])
    assert found == PackageCall("fields", "Field.from_numpy")
    advice = told(replace(EXPLICIT, framework=PYTHON, package_call=found))
    assert "fields itself waits, in Field.from_numpy" in advice and "Leave out" not in advice


@pytest.mark.parametrize(
    ("function", "itself"),
    [("graph.__enter__", True), ("GradScaler.step", True), ("Stream.synchronize", False), ("block_until_ready", False)],
)
def test_a_wait_that_a_package_makes_by_itself_is_not_the_programs_to_leave_out(function: str, itself: bool) -> None:
    (remedy,) = identify_remedies([replace(EXPLICIT, framework=TORCH, package_call=PackageCall("PyTorch", function))])
    assert (f"PyTorch itself waits, in {function}" in remedy.steps[0]) is itself
    assert (TORCH.waits in remedy.steps[0]) is not itself


@pytest.mark.parametrize(
    ("function", "itself"),
    [
        ("HashGrid.build", True),
        ("function_call", True),
        ("to_device", False),
        ("Module.to", False),
        ("DeviceNDArrayBase.copy_to_host", False),
        ("array.__init__", False),
    ],
)
def test_a_copy_that_a_package_makes_by_itself_names_its_function(function: str, itself: bool) -> None:
    advice = told(replace(TRANSFER, repeat=9, framework=WARP, package_call=PackageCall("Warp", function)))
    assert advice.startswith(f"Warp makes the call, in {function}. ") is itself


def test_the_function_that_fetches_is_named() -> None:
    wait = FetchingWaits(place(sample_analysis(), 0), 40, 40, 1.0, 0.0, 2.0, True, TORCH.name, "GradScaler.step")
    assert "40 of 40 calls wait in GradScaler.step for what the CPU then uses" in wait.sentence(Scale(10.0))


@pytest.mark.parametrize(("library", "function", "made_by_copy"), [
    ("/env/site-packages/torch/lib/libtorch_cuda.so", "at::native::copy_kernel_cuda", True),
    ("/env/site-packages/torch/lib/libtorch_cuda.so", "c10::cuda::device_synchronize", False),
    ("/env/site-packages/torch/lib/libtorch_cuda.so", "at::native::_local_scalar_dense_cuda(at::Tensor const&)", True),
    ("/env/site-packages/cupy/_core/core.so", "cupy._core.core._ndarray_base.get", True),
    ("/env/site-packages/cupy/cuda/stream.so", "cupy.cuda.stream._BaseStream.synchronize", False),
    ("/home/me/mine.so", "copy_all", False),
])  # fmt: skip
def test_a_wait_in_a_copy_is_that_of_a_packages_own_code(library: str, function: str, made_by_copy: bool) -> None:
    frames = [
        Frame(module=0, offset=1, function="cudaStreamSynchronize"),
        Frame(module=1, offset=1, function=function),
        Frame(module=0, offset=0, function="copy_to_device", file="/home/me/train.py", line=7, python=True),
    ]
    analysis = sample_analysis()
    changed = msgspec.structs.replace(
        analysis,
        modules=[Module(path=path, build_id="") for path in ("/usr/lib/libcudart.so.13", library)],
        stacks=[msgspec.structs.replace(stack, frames=frames) for stack in analysis.stacks],
    )
    assert in_copy(changed, changed.sites[0]) is made_by_copy


@pytest.mark.parametrize("keep", [(), (9,)])
def test_a_copy_that_need_not_wait_is_made_asynchronous_in_the_packages_words(keep: tuple[int, ...]) -> None:
    (remedy,) = identify_remedies([replace(EXPLICIT, keep=keep, framework=TORCH, in_copy=True)])
    assert remedy.steps[1] == TORCH.asynchronous
    assert not any("Remove" in step for step in remedy.steps)
    assert ("stays" in remedy.steps[0]) == bool(keep)


def test_a_copy_whose_own_wait_is_needed_is_not_made_asynchronous() -> None:
    (remedy,) = identify_remedies([replace(EXPLICIT, framework=TORCH, in_copy=True, copy_needed=True)])
    assert "The copy itself waits before this call, which is needed" in remedy.steps[0]
    assert TORCH.asynchronous not in remedy.steps and "need not wait" not in remedy.steps[0]
    (upload,) = identify_remedies([replace(EXPLICIT, framework=TORCH, in_copy=True, copy_needed=True, in_upload=True)])
    assert upload.steps[1] == f"In PyTorch: {TORCH.sent_ahead}"


@pytest.mark.parametrize(("kind", "needed"), [("required", True), ("misplaced", True), ("unnecessary", False)])
def test_the_copy_of_a_line_tells_whether_its_own_wait_is_needed(kind: str, needed: bool) -> None:
    analysis = sample_analysis()
    wait = analysis.sites[0]
    verdict = Verdict(kind=kind, because=Because.RESULT_USED, occurrences=wait.count)
    download = msgspec.structs.replace(
        wait, kind="transfer", synchronization=[verdict], download=DownloadUse(occurrences=0, of=1, watch="pages")
    )
    changed = msgspec.structs.replace(analysis, sites=[*analysis.sites, download])
    found = {one.site: one.copy_needed for one in problem_sites(changed, "carry")}
    assert found[0] is needed


def test_an_upload_that_need_not_wait_is_made_so_in_the_packages_words() -> None:
    (remedy,) = identify_remedies([replace(EXPLICIT, framework=TORCH, in_copy=True, in_upload=True)])
    assert remedy.steps[1] == f"In PyTorch: {TORCH.sent_ahead}"


def test_waits_that_a_later_call_of_the_same_site_covers_are_left_out_but_for_the_last() -> None:
    for framework in (TORCH, None):
        explicit = replace(EXPLICIT, keep=(EXPLICIT.site,), framework=framework)
        assert "but wait once where the results are used" in identify_remedies([explicit])[0].steps[0]
        assert "named below" not in " ".join(identify_remedies([explicit])[0].steps)
    copy = replace(EXPLICIT, keep=(EXPLICIT.site,), framework=CUPY, in_copy=True)
    assert (
        "in no run did anything rely on that, as long as the last of them stays."
        in identify_remedies([copy])[0].steps[0]
    )
