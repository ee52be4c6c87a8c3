"""Textures and surfaces: what fetches yield, against the same computed here.

What each yields is that of NVIDIA's "CUDA C++ Programming Guide", appendix "Texture Fetching".
"""

from __future__ import annotations

import ctypes
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
from cuda.bindings import driver

from tests.vgpu.ptx import Program, Status, download, kernel, quick_gpu, upload
from tests.vgpu.virtual_gpu import checked

pytestmark = pytest.mark.virtual_gpu

Address, Filter, Format = driver.CUaddress_mode, driver.CUfilter_mode, driver.CUarray_format
INTEGERS, NORMALIZED = 1, 2  # CU_TRSF_READ_AS_INTEGER, CU_TRSF_NORMALIZED_COORDINATES
SURFACE, LAYERED = 2, 1  # CUDA_ARRAY3D_SURFACE_LDST, CUDA_ARRAY3D_LAYERED
FORMATS = {
    "u1": Format.CU_AD_FORMAT_UNSIGNED_INT8,
    "i2": Format.CU_AD_FORMAT_SIGNED_INT16,
    "i4": Format.CU_AD_FORMAT_SIGNED_INT32,
    "f2": Format.CU_AD_FORMAT_HALF,
    "f4": Format.CU_AD_FORMAT_FLOAT,
}


def array_of(texels: np.ndarray, channels: int = 1, flags: int = SURFACE) -> Any:
    """A CUDA array of texels in 1, 2 or 3 dimensions; several channels are the last dimension."""
    shape = texels.shape[:-1] if channels > 1 else texels.shape
    made = driver.CUDA_ARRAY3D_DESCRIPTOR()
    made.Width, made.Height, made.Depth = (*shape[::-1], 0, 0)[:3]
    made.Format, made.NumChannels, made.Flags = FORMATS[texels.dtype.str[1:]], channels, flags
    array = checked(driver.cuArray3DCreate(made))
    copy_array(texels, array, channels, to_array=True)
    return array


def copy_array(texels: np.ndarray, array: Any, channels: int = 1, *, to_array: bool) -> None:
    """Copy between host memory and an array, as a box."""
    shape = texels.shape[:-1] if channels > 1 else texels.shape
    width, height, depth = (*shape[::-1], 1, 1)[:3]
    box = driver.CUDA_MEMCPY3D()
    box.WidthInBytes, box.Height, box.Depth = width * channels * texels.itemsize, height, depth
    host, device = ("src", "dst") if to_array else ("dst", "src")
    setattr(box, f"{host}MemoryType", driver.CUmemorytype.CU_MEMORYTYPE_HOST)
    setattr(box, f"{host}Host", texels.ctypes.data)
    setattr(box, f"{host}Pitch", box.WidthInBytes)
    setattr(box, f"{host}Height", height)
    setattr(box, f"{device}MemoryType", driver.CUmemorytype.CU_MEMORYTYPE_ARRAY)
    setattr(box, f"{device}Array", array)
    checked(driver.cuMemcpy3D(box))


def resource_of(array: Any) -> Any:
    resource = driver.CUDA_RESOURCE_DESC()
    resource.resType = driver.CUresourcetype.CU_RESOURCE_TYPE_ARRAY
    resource.res.array.hArray = array
    return resource


def texture_of(
    resource: Any,
    flags: int = 0,
    mode: Any = Address.CU_TR_ADDRESS_MODE_CLAMP,
    filtering: Any = Filter.CU_TR_FILTER_MODE_POINT,
) -> Any:
    """The status and the texture object."""
    made = driver.CUDA_TEXTURE_DESC()
    made.addressMode = [mode] * 3
    made.filterMode = filtering
    made.flags = flags
    return driver.cuTexObjectCreate(resource, made, None)


def fetch(texture: Any, instruction: str, *coordinates: np.ndarray, result: str = "f4") -> np.ndarray:
    """The channels that one instruction yields for every point; shape (points, 4)."""
    count = len(coordinates[0])
    columns = np.stack(coordinates).view("u4")
    found = np.zeros((count, 4), result)
    loads = "".join(f"ld.global.b32 %r{axis + 1}, [%w1+{axis * count * 4}];" for axis in range(len(coordinates)))
    names = [f"%r{axis + 1}" for axis in range(len(coordinates))]
    names = [*names, names[-1]] if len(names) == 3 else names
    body = f"""
        mov.u32 %r0, %ctaid.x; mad.wide.u32 %w1, %r0, 4, %a1; {loads}
        {instruction} {{%r4, %r5, %r6, %r7}}, [%a0, {{{", ".join(names)}}}];
        mad.wide.u32 %w2, %r0, 16, %a2; st.global.v4.b32 [%w2], {{%r4, %r5, %r6, %r7}};
    """
    inputs, outputs = upload(columns), upload(found)
    assert Program(kernel("k", 3, body)).launch("k", count, 1, texture, inputs, outputs) == Status.CUDA_SUCCESS
    return download(outputs, found)


MODES = {
    "clamp": lambda i, n: np.clip(i, 0, n - 1),
    "wrap": lambda i, n: i % n,
    "mirror": lambda i, n: np.where(i % (2 * n) < n, i % (2 * n), 2 * n - 1 - i % (2 * n)),
    "border": lambda i, n: np.where((i >= 0) & (i < n), i, n),  # where the padded axis has zeros
}


def expected(texels: np.ndarray, mode: str, filtered: bool, *coordinates: np.ndarray) -> np.ndarray:
    """The value at each point, in texels: coordinates in the order of the texels' last axis first."""
    padded = np.pad(texels.astype("f8"), [(0, 1)] * texels.ndim)
    sides: list[list[tuple[np.ndarray, np.ndarray]]] = []
    for x, size in zip(coordinates, texels.shape[::-1], strict=True):
        x = x.astype("f8")
        if not filtered:
            sides.append([(MODES[mode](np.floor(x).astype("i8"), size), np.ones(len(x)))])
            continue
        below = np.floor(x - 0.5)
        weight = np.rint((x - 0.5 - below) * 256) / 256
        first = below.astype("i8")
        sides.append([(MODES[mode](first, size), 1 - weight), (MODES[mode](first + 1, size), weight)])
    total = np.zeros(len(coordinates[0]))
    for places, weight in corners(sides):
        total += weight * padded[tuple(places[::-1])]
    return total


def corners(sides: list[list[tuple[np.ndarray, np.ndarray]]]) -> Iterator[tuple[list[np.ndarray], np.ndarray]]:
    if not sides:
        yield [], np.array(1.0)
        return
    for place, weight in sides[0]:
        for rest, others in corners(sides[1:]):
            yield [place, *rest], weight * others


@pytest.mark.parametrize("filtered", [False, True], ids=["point", "linear"])
def test_fetches_of_one_two_and_three_dimensions(filtered: bool) -> None:
    """In all modes. Coordinates are odd multiples of 1/256: exact numbers, none of them between two texels."""
    random = np.random.default_rng(50)
    filtering = Filter.CU_TR_FILTER_MODE_LINEAR if filtered else Filter.CU_TR_FILTER_MODE_POINT
    with quick_gpu():
        for shape in ((16,), (4, 8), (4, 2, 8)):
            texels = random.integers(-99, 99, shape).astype("f4")
            array = array_of(texels)
            points = [(2 * random.integers(-256, 128 * size + 256, 200) + 1) / 256 for size in shape[::-1]]
            for mode in MODES:
                normalized = mode in ("wrap", "mirror")
                texture = checked(
                    texture_of(
                        resource_of(array),
                        NORMALIZED if normalized else 0,
                        getattr(Address, f"CU_TR_ADDRESS_MODE_{mode.upper()}"),
                        filtering,
                    )
                )
                scale = shape[::-1] if normalized else (1, 1, 1)
                given = [(x / size).astype("f4") for x, size in zip(points, scale, strict=False)]
                found = fetch(texture, f"tex.{len(shape)}d.v4.f32.f32", *given)
                right = expected(texels, mode, filtered, *points)
                np.testing.assert_allclose(found[:, 0], right, rtol=0, atol=1e-4, err_msg=f"{mode} {shape}")
                checked(driver.cuTexObjectDestroy(texture))
            checked(driver.cuArrayDestroy(array))


def test_integers_are_read_as_they_are_or_as_parts_of_their_largest_value() -> None:
    with quick_gpu():
        for kind, channels in (("u1", 4), ("i2", 2), ("i4", 1), ("f2", 4)):
            bounds = np.iinfo(kind) if kind != "f2" else None
            texels = np.random.default_rng(51).integers(-40, 40, (6, channels)).astype(kind)
            if bounds:
                texels[0], texels[1] = bounds.min, bounds.max
            flat = texels[:, 0].copy() if channels == 1 else texels
            resource = resource_of(array_of(flat, channels))
            x = np.arange(6, dtype="f4") + np.float32(0.25)
            plain = fetch(checked(texture_of(resource, INTEGERS)), "tex.1d.v4.u32.f32", x, result="i4")
            if bounds:
                assert (plain[:, :channels] == texels).all()
                assert (plain[:, channels:] == 0).all()
            if kind != "i4":
                parts = fetch(checked(texture_of(resource)), "tex.1d.v4.f32.f32", x)[:, :channels]
                whole = texels.astype("f4") / np.float32(bounds.max if bounds else 1)
                assert (parts == np.maximum(whole, -1) if bounds else parts == whole).all()


def test_linear_memory_and_pitched_memory() -> None:
    """Outside of linear memory, zero is read."""
    with quick_gpu():
        texels = np.arange(1, 65, dtype="f4")
        memory = upload(texels)
        resource = driver.CUDA_RESOURCE_DESC()
        resource.resType = driver.CUresourcetype.CU_RESOURCE_TYPE_LINEAR
        linear = resource.res.linear
        linear.devPtr, linear.format, linear.numChannels, linear.sizeInBytes = memory, FORMATS["f4"], 1, texels.nbytes
        resource.res.linear = linear
        x = np.arange(-3, 68, dtype="i4")
        found = fetch(checked(texture_of(resource)), "tex.1d.v4.f32.s32", x)[:, 0]
        assert (found == np.where((x >= 0) & (x < 64), x + 1, 0)).all()

        resource = driver.CUDA_RESOURCE_DESC()
        resource.resType = driver.CUresourcetype.CU_RESOURCE_TYPE_PITCH2D
        pitched = resource.res.pitch2D
        pitched.devPtr, pitched.format, pitched.numChannels = memory, FORMATS["f4"], 1
        pitched.width, pitched.height, pitched.pitchInBytes = 5, 4, 64
        resource.res.pitch2D = pitched
        y, x = (axis.ravel().astype("f4") for axis in np.mgrid[-1:6, -1:7])
        found = fetch(checked(texture_of(resource)), "tex.2d.v4.f32.f32", x, y)[:, 0]
        assert (found == texels.reshape(4, 16)[np.clip(y, 0, 3).astype(int), np.clip(x, 0, 4).astype(int)]).all()


def test_page_locked_memory_is_read_until_it_is_freed() -> None:
    with quick_gpu():
        texels = np.arange(1, 65, dtype="f4")
        host = checked(driver.cuMemAllocHost(texels.nbytes))
        ctypes.memmove(host, texels.ctypes.data, texels.nbytes)
        resource = driver.CUDA_RESOURCE_DESC()
        resource.resType = driver.CUresourcetype.CU_RESOURCE_TYPE_LINEAR
        linear = resource.res.linear
        linear.devPtr, linear.format, linear.numChannels, linear.sizeInBytes = host, FORMATS["f4"], 1, texels.nbytes
        resource.res.linear = linear
        texture = checked(texture_of(resource))
        assert (fetch(texture, "tex.1d.v4.f32.s32", np.arange(64, dtype="i4"))[:, 0] == texels).all()
        checked(driver.cuMemFreeHost(host))
        body = "mov.u32 %r0, 0; tex.1d.v4.f32.s32 {%r4, %r5, %r6, %r7}, [%a0, {%r0}];"
        assert Program(kernel("k", 3, body)).launch("k", 1, 1, texture, 0, 0) == Status.CUDA_ERROR_ILLEGAL_ADDRESS


def test_layers_are_chosen_and_not_filtered() -> None:
    with quick_gpu():
        texels = np.random.default_rng(52).integers(0, 99, (3, 4, 8)).astype("f4")
        texture = checked(texture_of(resource_of(array_of(texels, flags=LAYERED))))
        layer, y, x = (axis.ravel() for axis in np.mgrid[0:3, 0:4, 0:8])
        found = fetch(
            texture, "tex.a2d.v4.f32.f32", layer.astype("i4").view("f4"), x.astype("f4"), y.astype("f4")
        )  # fmt: skip
        assert (found[:, 0] == texels.ravel()).all()


@pytest.mark.parametrize("layers", [0, 2])
def test_directions_choose_faces_of_cubes(layers: int) -> None:
    """Every texel of every face, from the direction to its centre; other lengths of the direction change nothing."""
    size, cube = 4, driver.CUDA_ARRAY3D_CUBEMAP
    with quick_gpu():
        texels = np.random.default_rng(53).integers(0, 999, (6 * max(layers, 1), size, size)).astype("f4")
        array = array_of(texels, flags=cube | (LAYERED if layers else 0))
        texture = checked(texture_of(resource_of(array), flags=driver.CU_TRSF_NORMALIZED_COORDINATES))
        layer, face, row, column = (axis.ravel() for axis in np.mgrid[0 : max(layers, 1), 0:6, 0:size, 0:size])
        s, t, one = 2 * (column + 0.5) / size - 1, 2 * (row + 0.5) / size - 1, np.ones(len(face))
        # CUDA C++ Programming Guide, "Cubemap Textures": the faces are +x, -x, +y, -y, +z, -z.
        towards = [[one, -t, -s], [-one, -t, s], [s, one, t], [s, -one, -t], [s, -t, one], [-s, -t, -one]]
        lengths = np.random.default_rng(54).uniform(0.1, 9, len(face))
        axes = [(np.choose(face, [one[axis] for one in towards]) * lengths).astype("f4") for axis in range(3)]
        given = [layer.astype("i4").view("f4"), *axes] if layers else axes
        found = fetch(texture, f"tex.{'a' if layers else ''}cube.v4.f32.f32", *given)
        assert (found[:, 0] == texels.ravel()).all()


def test_cubes_have_six_square_faces() -> None:
    with quick_gpu():
        wrong = driver.CUDA_ARRAY3D_DESCRIPTOR()
        wrong.Format, wrong.NumChannels = Format.CU_AD_FORMAT_FLOAT, 1
        for width, height, depth, more in ((4, 8, 6, 0), (4, 4, 5, 0), (4, 4, 12, 0), (4, 4, 7, LAYERED)):
            wrong.Width, wrong.Height, wrong.Depth, wrong.Flags = (
                width,
                height,
                depth,
                driver.CUDA_ARRAY3D_CUBEMAP | more,
            )
            assert driver.cuArray3DCreate(wrong)[0] == Status.CUDA_ERROR_INVALID_VALUE
        faces = resource_of(array_of(np.zeros((6, 4, 4), "f4"), flags=driver.CUDA_ARRAY3D_CUBEMAP))
        seamless = driver.CU_TRSF_SEAMLESS_CUBEMAP
        assert texture_of(faces, flags=seamless)[0] == Status.CUDA_ERROR_NOT_SUPPORTED


def test_surfaces_are_read_and_written() -> None:
    """Every texel gets twice its value, as accesses beyond the end are lost and yield zero, or are clamped."""
    with quick_gpu():
        texels = np.random.default_rng(53).integers(0, 99, (4, 8, 2)).astype("i2")
        array = array_of(texels, 2)
        surface = checked(driver.cuSurfObjectCreate(resource_of(array)))
        body = """
            mov.u32 %r1, %tid.x; shl.b32 %r1, %r1, 2; mov.u32 %r2, %tid.y;
            suld.b.2d.v2.b16.zero {%h1, %h2}, [%a0, {%r1, %r2}];
            add.u16 %h3, %h1, %h1; add.u16 %h4, %h2, %h2;
            sust.b.2d.v2.b16.zero [%a0, {%r1, %r2}], {%h3, %h4};
            suld.b.2d.b32.clamp {%r3}, [%a0, {%r1, %r2}];
            mov.u32 %r4, %ntid.x; mov.u32 %r5, %tid.x; mad.lo.u32 %r4, %r4, %r2, %r5;
            mad.wide.u32 %w1, %r4, 8, %a1; cvt.u32.u16 %r6, %h1; st.global.v2.u32 [%w1], {%r6, %r3};
        """
        seen = np.zeros((6, 10, 2), "u4")
        address = upload(seen)
        assert Program(kernel("k", 2, body)).launch("k", 1, (10, 6), surface, address) == Status.CUDA_SUCCESS
        found = np.zeros_like(texels)
        copy_array(found, array, 2, to_array=False)
        assert (found == 2 * texels).all()
        seen = download(address, seen)
        assert (seen[:4, :8, 0] == texels[..., 0]).all()
        assert not seen[4:, :, 0].any()
        assert not seen[:, 8:, 0].any()
        assert (seen[..., 1] == np.pad((2 * texels).view("u4")[..., 0], ((0, 2), (0, 2)), mode="edge")).all()


def test_copies_reach_parts_of_arrays_and_nothing_beyond() -> None:
    with quick_gpu():
        texels = np.arange(32, dtype="f4").reshape(4, 8)
        array = array_of(texels)
        assert [getattr(checked(driver.cuArray3DGetDescriptor(array)), name) for name in ("Width", "Height")] == [8, 4]
        memory = upload(np.zeros(6, "f4"))
        box = driver.CUDA_MEMCPY2D()
        box.srcMemoryType, box.srcArray = driver.CUmemorytype.CU_MEMORYTYPE_ARRAY, array
        box.srcXInBytes, box.srcY, box.WidthInBytes, box.Height = 8, 1, 12, 2
        box.dstMemoryType, box.dstDevice, box.dstPitch = driver.CUmemorytype.CU_MEMORYTYPE_DEVICE, memory, 12
        checked(driver.cuMemcpy2D(box))
        assert (download(memory, np.zeros((2, 3), "f4")) == texels[1:3, 2:5]).all()
        box.srcXInBytes = 24
        assert driver.cuMemcpy2D(box)[0] == Status.CUDA_ERROR_INVALID_VALUE
        checked(driver.cuArrayDestroy(array))
        box.srcXInBytes = 0
        assert driver.cuMemcpy2D(box)[0] == Status.CUDA_ERROR_INVALID_HANDLE


def test_what_cannot_be_is_refused() -> None:
    with quick_gpu():
        integers = resource_of(array_of(np.zeros(8, "i4"), flags=0))
        linear = Filter.CU_TR_FILTER_MODE_LINEAR
        assert texture_of(integers, filtering=linear)[0] == Status.CUDA_ERROR_INVALID_VALUE
        assert driver.cuSurfObjectCreate(integers)[0] == Status.CUDA_ERROR_INVALID_VALUE
        body = "tld4.r.2d.v4.f32.f32 {%f1, %f2, %f3, %f4}, [%a0, {%f5, %f6}];"
        assert Program(kernel("k", 1, body)).launch("k", 1, 1, 1) == Status.CUDA_ERROR_NOT_SUPPORTED


@pytest.mark.parametrize(
    "body",
    [
        "tex.1d.v4.f32.s32 {%f1, %f2, %f3, %f4}, [%a0, {%r1}];",
        "mov.u32 %r1, 4096; suld.b.1d.b32.trap {%r2}, [%a1, {%r1}];",
        "mov.u32 %r1, 2; suld.b.1d.b32.zero {%r2}, [%a1, {%r1}];",
    ],
    ids=["no such object", "outside", "misaligned"],
)
def test_bad_accesses_are_faults(body: str) -> None:
    with quick_gpu():
        surface = checked(driver.cuSurfObjectCreate(resource_of(array_of(np.zeros(8, "i4")))))
        faults = (Status.CUDA_ERROR_ILLEGAL_ADDRESS, Status.CUDA_ERROR_MISALIGNED_ADDRESS)
        status = Program(kernel("k", 2, body)).launch("k", 1, 1, 60000, surface)
        assert status == faults[body.startswith("mov.u32 %r1, 2;")]
