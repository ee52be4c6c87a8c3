"""The driver catalogue against CUDA's own header, and the rules of its table."""

from __future__ import annotations

import itertools
from pathlib import Path

import pytest

from ffm.driver.catalogue import ABSENT, ROLES, CatalogueError, DriverFunction, load_catalogue
from ffm.driver.vocabulary import Awaits, DefaultStream, Direction, Effect, Kind, Memory, Shape
from tests.driver.cuda_header import Argument, prototypes

CATALOGUE = load_catalogue()
SIZES = {"size_t", "unsigned int", "cuuint32_t", "cuuint64_t"}
ADDRESSES = {"CUdeviceptr", "CUdeviceptr_v1"}
HANDLES = {
    "CUarray",
    "CUcontext",
    "CUevent",
    "CUexternalMemory",
    "CUfunction",
    "CUgraph",
    "CUgraphExec",
    "CUgreenCtx",
    "CUkernel",
    "CUlibrary",
    "CUlinkState",
    "CUmemGenericAllocationHandle",
    "CUmemoryPool",
    "CUmipmappedArray",
    "CUmodule",
    "CUstream",
}


def is_address(argument: Argument) -> bool:
    return argument.pointers > 0 or argument.type in ADDRESSES


ROLE_TYPES = {
    "destination": is_address,
    "stream": lambda argument: argument == Argument("CUstream", 0),
    "result": lambda argument: argument.pointers > 0,
    "handle": lambda argument: argument.pointers == 0 and argument.type in HANDLES,
    "value": lambda argument: argument.pointers == 0,
    "height": lambda argument: argument.pointers == 0 and argument.type in SIZES,
    "count": lambda argument: argument.pointers == 0 and argument.type in SIZES,
    "destination_context": lambda argument: argument == Argument("CUcontext", 0),
    "source_context": lambda argument: argument == Argument("CUcontext", 0),
    "parameters": lambda argument: argument == Argument("void", 2),
    "extra": lambda argument: argument == Argument("void", 2),
    "node": lambda argument: argument == Argument("CUgraphNode", 0),
    "description": lambda argument: argument.pointers == 1 or argument == Argument("CUgraph", 0),
    "flags": lambda argument: argument.pointers == 0 and argument.type in {"unsigned int", "unsigned long long"},
}


def is_source(function: DriverFunction, argument: Argument) -> bool:
    """Return whether the argument is what the table's header says about `source`: an address, except for two kinds."""
    if function.kind is Kind.STREAM:
        return argument == Argument("unsigned int", 0)
    if function.base == "cuEventElapsedTime":
        return argument == Argument("CUevent", 0)
    return is_address(argument)


def roles(function: DriverFunction) -> dict[str, int]:
    positions = {role: getattr(function, role) for role in ROLES}
    return {role: position for role, position in positions.items() if position != ABSENT}


@pytest.mark.parametrize("function", CATALOGUE.functions, ids=lambda function: function.name)
def test_row_agrees_with_the_header(function: DriverFunction) -> None:
    arguments = prototypes()[function.name]
    assert function.arity == len(arguments)
    for role, position in roles(function).items():
        argument = arguments[position]
        if role == "source":
            assert is_source(function, argument), argument
        elif role in ROLE_TYPES:
            assert ROLE_TYPES[role](argument), (role, argument)
        else:
            assert role in ("bytes", "pitch")
            in_memory = function.shape is Shape.BATCH or role == "pitch"
            assert argument.type in SIZES
            assert argument.pointers == 0 or in_memory
    streams = [place for place, argument in enumerate(arguments) if argument == Argument("CUstream", 0)]
    if function.kind is not Kind.STREAM:
        assert streams == ([function.stream] if function.stream != ABSENT else [])


@pytest.mark.parametrize("function", CATALOGUE.functions, ids=lambda function: function.name)
def test_narrow_means_32_bit_sizes_or_addresses(function: DriverFunction) -> None:
    arguments = prototypes()[function.name]
    narrow = any(
        argument.type in {"CUdeviceptr_v1", "CUDA_MEMCPY2D_v1", "CUDA_MEMCPY3D_v1"}
        or argument.type.endswith("DESCRIPTOR_v1")
        for argument in arguments
    )
    if function.bytes != ABSENT:
        narrow |= arguments[function.bytes].type == "unsigned int"
    assert narrow == (function.shape is Shape.NARROW)


def test_every_function_of_the_header_is_watched_or_left_out_on_purpose() -> None:
    inline = {"cuGetProcAddress_v2_ptsz"}
    assert prototypes().keys() - inline - CATALOGUE.left_out - {f.name for f in CATALOGUE.functions} == set()


def test_left_out_functions_do_no_transfer_free_launch_or_wait() -> None:
    suspicious = ("Memcpy", "Memset", "Synchronize", "MemFree", "Launch", "MemAlloc")
    node_descriptions = "cuGraph"
    for name in CATALOGUE.left_out:
        assert name.startswith(node_descriptions) or not any(word in name for word in suspicious), name


def test_functions_taking_other_than_integers_and_pointers_are_left_out() -> None:
    large = {"float", "double", "CUipcMemHandle"}
    for function in CATALOGUE.functions:
        for argument in prototypes()[function.name]:
            assert argument.pointers > 0 or argument.type not in large, function.name


def test_every_version_and_flavour_of_a_watched_function_is_watched() -> None:
    bases = {function.base for function in CATALOGUE.functions}
    for name in prototypes():
        if name.split("_")[0] in bases and name != "cuGetProcAddress_v2_ptsz":
            assert name in CATALOGUE, name


def test_flavour_suffix_says_which_default_stream() -> None:
    for function in CATALOGUE.functions:
        per_thread = function.default_stream is DefaultStream.PER_THREAD
        assert per_thread == function.name.endswith(("_ptsz", "_ptds"))


def test_transfers_have_a_direction_and_only_they() -> None:
    for function in CATALOGUE.functions:
        assert (function.kind is Kind.TRANSFER) == (function.direction is not Direction.NONE), function.name


def test_allocations_and_frees_name_their_memory() -> None:
    for function in CATALOGUE.of_kind(Kind.ALLOCATION, Kind.FREE):
        assert function.memory is not Memory.NONE, function.name
    for function in CATALOGUE.of_kind(Kind.ALLOCATION):
        assert (function.result == ABSENT) != (function.destination == ABSENT), function.name


def test_memset_elements_have_the_width_in_their_name() -> None:
    for function in CATALOGUE.of_kind(Kind.SET):
        bits = int("".join(character for character in function.base.split("D")[-1] if character.isdigit()))
        assert function.element * 8 == bits, function.name
        assert function.value == function.bytes - 1


def test_a_function_is_replaced_once() -> None:
    """What is hooked as a row is not hooked again for a correction's own purpose."""
    assert [name for name in CATALOGUE.extra.values() if name in CATALOGUE] == []


def test_lookup_by_name_and_index_agree() -> None:
    for place, function in enumerate(CATALOGUE.functions):
        assert function.index == place
        assert CATALOGUE[place] is CATALOGUE[function.name]
    assert CATALOGUE.get("cuNoSuchFunction") is None
    with pytest.raises(KeyError):
        CATALOGUE["cuNoSuchFunction"]


def test_known_rows() -> None:
    copy = CATALOGUE["cuMemcpyPeerAsync_ptsz"]
    assert (copy.destination, copy.source, copy.bytes, copy.stream) == (0, 2, 4, 5)
    assert copy.asynchronous
    free = CATALOGUE["cuMemFree_v2"]
    assert (free.kind, free.memory, free.destination) == (Kind.FREE, Memory.DEVICE, 0)


def write_table(folder: Path, functions: str, more: str = "", version: int = 1) -> Path:
    path = folder / "table.toml"
    path.write_text(f'version = {version}\n[[group]]\nkind = "free"\n{more}\nfunctions = {functions}\n')
    return path


def test_digest_changes_with_any_row(tmp_path: Path) -> None:
    one = load_catalogue(write_table(tmp_path, '[["cuMemFree", "-", "destination", "2000"]]'))
    other = tmp_path / "other"
    other.mkdir()
    two = load_catalogue(write_table(other, '[["cuMemFree", "-", "handle", "2000"]]'))
    assert one.digest != two.digest
    assert len(one.digest) == 64


@pytest.mark.parametrize(
    ("functions", "more", "version", "message"),
    [
        ('[["cuA", "- -", "", "2000 2000"]]', "", 1, "cuA has two rows"),
        ('[["cuA", "-", "nonsense", "2000"]]', "", 1, "unknown or not unique"),
        ('[["cuA", "-", "source source", "2000"]]', "", 1, "unknown or not unique"),
        ('[["cuA", "- ptsz", "", "2000"]]', "", 1, "not a version of CUDA for each"),
        ('[["cuA", "-", "", "2000"]]', "colour = 1", 1, "unknown keys: colour"),
        ('[["cuA", "-", "", "2000"]]', "", 7, "has version 7"),
    ],
)
def test_wrong_tables_are_refused(tmp_path: Path, functions: str, more: str, version: int, message: str) -> None:
    with pytest.raises(CatalogueError, match=message):
        load_catalogue(write_table(tmp_path, functions, more, version))


def test_a_call_of_an_unknown_function_is_refused(tmp_path: Path) -> None:
    table = write_table(tmp_path, '[["cuA", "-", "", "2000"]]')
    table.write_text(f'{table.read_text()}[own_calls]\nlook = ["cuA", "cuB"]\n')
    with pytest.raises(CatalogueError, match=r"called but not in the table: cuB\."):
        load_catalogue(table)


def test_what_calls_mean_is_said_of_every_form() -> None:
    catalogue = load_catalogue()
    bases = {effect: {function.base for function in catalogue.with_effect(effect)} for effect in Effect}
    for function in catalogue.functions:
        assert function.base in bases[function.effect]
        assert (function.awaits is not Awaits.NOTHING) == (function.kind in (Kind.SYNCHRONIZATION, Kind.QUERY))
    assert bases[Effect.RECORD_EVENT] == {"cuEventRecord", "cuEventRecordWithFlags"}
    assert bases[Effect.WAIT_EVENT] == {"cuStreamWaitEvent"}
    assert bases[Effect.END_CONTEXT] == {"cuCtxDestroy", "cuGreenCtxDestroy", "cuDevicePrimaryCtxReset"}
    assert bases[Effect.RELEASE_CONTEXT] == {"cuCtxDetach", "cuDevicePrimaryCtxRelease"}
    assert bases[Effect.UNLOAD_CODE] == {"cuModuleUnload", "cuLibraryUnload"}
    assert {base for base in bases[Effect.LAUNCH_KERNEL] if not base.startswith("cuLaunch")} == set()
    for one, other in itertools.combinations(Effect, 2):
        assert not bases[one] & bases[other]
