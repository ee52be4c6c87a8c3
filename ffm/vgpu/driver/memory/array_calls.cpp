/* cuArray…: CUDA arrays lie in device memory, row after row. Not supported are block-compressed, planar and
 * normalized integer formats, and sparse arrays. */
#include <algorithm>
#include <map>
#include <mutex>

#include "foundation/configuration.h"
#include "foundation/refusal.h"
#include "image.h"

using namespace vgpu;

DRIVER_IMPLEMENTATION(cuMemAlloc_v2);
DRIVER_IMPLEMENTATION(cuMemFree_v2);

namespace
{

constexpr unsigned known_flags =
    CUDA_ARRAY3D_LAYERED | CUDA_ARRAY3D_SURFACE_LDST | CUDA_ARRAY3D_TEXTURE_GATHER | CUDA_ARRAY3D_CUBEMAP;

struct Arrays {
    std::mutex mutex;
    std::map<CUarray, Array> known;
};

Arrays &arrays()
{
    static Arrays *instance = new Arrays;
    return *instance;
}

CUresult create_array(CUarray *handle, const CUDA_ARRAY3D_DESCRIPTOR &description)
{
    Context *context;
    CUresult result = enter(context);
    if (result != CUDA_SUCCESS)
        return result;
    bool layered = (description.Flags & CUDA_ARRAY3D_LAYERED) != 0;
    bool cube = (description.Flags & CUDA_ARRAY3D_CUBEMAP) != 0; /* six square faces, or layers of six */
    if (!handle || description.Width == 0 || (layered && description.Depth == 0) ||
        (!layered && description.Depth > 0 && description.Height == 0) ||
        (cube && (description.Width != description.Height || description.Depth % 6 != 0 || description.Depth / 6 < 1 ||
                  (!layered && description.Depth != 6))) ||
        (description.NumChannels != 1 && description.NumChannels != 2 && description.NumChannels != 4))
        return CUDA_ERROR_INVALID_VALUE;
    if (channel_bytes(description.Format) == 0 || (description.Flags & ~known_flags) != 0) {
        refused("a CUDA array of format %#x with flags %#x", static_cast<unsigned>(description.Format),
                description.Flags);
        return CUDA_ERROR_NOT_SUPPORTED;
    }
    Array array = {description, {}, reinterpret_cast<CUcontext>(context)};
    Image &image = array.image;
    image.format = description.Format;
    image.channels = description.NumChannels;
    image.width = description.Width;
    image.height = std::max<std::size_t>(description.Height, 1);
    image.depth = std::max<std::size_t>(description.Depth, 1);
    image.row_pitch = image.width * image.texel_bytes();
    image.slice_pitch = image.row_pitch * image.height;
    CUdeviceptr address;
    result = implementation_cuMemAlloc_v2(&address, image.slice_pitch * image.depth);
    if (result != CUDA_SUCCESS)
        return result;
    image.memory = reinterpret_cast<char *>(address);
    *handle = reinterpret_cast<CUarray>(address);
    std::lock_guard<std::mutex> lock(arrays().mutex);
    arrays().known[*handle] = array;
    return CUDA_SUCCESS;
}

/* Finds the array for a call that takes its handle. */
CUresult asked_array(CUarray handle, Array &array)
{
    CUresult result = enter();
    if (result != CUDA_SUCCESS)
        return result;
    return find_array(handle, array) ? CUDA_SUCCESS : CUDA_ERROR_INVALID_HANDLE;
}

} // namespace

std::size_t Image::texel_bytes() const
{
    return channel_bytes(format) * channels;
}

std::size_t vgpu::channel_bytes(CUarray_format format)
{
    switch (format) {
    case CU_AD_FORMAT_UNSIGNED_INT8:
    case CU_AD_FORMAT_SIGNED_INT8:
        return 1;
    case CU_AD_FORMAT_UNSIGNED_INT16:
    case CU_AD_FORMAT_SIGNED_INT16:
    case CU_AD_FORMAT_HALF:
        return 2;
    case CU_AD_FORMAT_UNSIGNED_INT32:
    case CU_AD_FORMAT_SIGNED_INT32:
    case CU_AD_FORMAT_FLOAT:
        return 4;
    default:
        return 0;
    }
}

bool vgpu::is_integer(CUarray_format format)
{
    return format != CU_AD_FORMAT_HALF && format != CU_AD_FORMAT_FLOAT;
}

bool vgpu::find_array(CUarray handle, Array &found)
{
    std::lock_guard<std::mutex> lock(arrays().mutex);
    auto entry = arrays().known.find(handle);
    if (entry == arrays().known.end())
        return false;
    found = entry->second;
    return true;
}

CUresult vgpu::array_side(CUarray handle, std::size_t x, std::size_t y, std::size_t z, const CopyShape &shape,
                          CopySide &side)
{
    Array array;
    if (!find_array(handle, array))
        return CUDA_ERROR_INVALID_HANDLE;
    auto inside = [](std::size_t first, std::size_t count, std::size_t size) {
        return first <= size && count <= size - first;
    };
    const Image &image = array.image;
    if (!inside(x, shape.width, image.row_pitch) || !inside(y, shape.height, image.height) ||
        !inside(z, shape.depth, image.depth))
        return CUDA_ERROR_INVALID_VALUE;
    side.row_pitch = image.row_pitch;
    side.slice_pitch = image.slice_pitch;
    return device_side(reinterpret_cast<CUdeviceptr>(image.memory) + z * image.slice_pitch + y * image.row_pitch + x,
                       side);
}

void vgpu::release_arrays(CUcontext context)
{
    std::lock_guard<std::mutex> lock(arrays().mutex);
    auto &known = arrays().known;
    for (auto entry = known.begin(); entry != known.end();)
        entry = entry->second.context == context ? known.erase(entry) : std::next(entry);
}

DRIVER_CALL(cuArray3DCreate_v2)(CUarray *handle, const CUDA_ARRAY3D_DESCRIPTOR *description)
{
    return description ? create_array(handle, *description) : CUDA_ERROR_INVALID_VALUE;
}

DRIVER_CALL(cuArrayCreate_v2)(CUarray *handle, const CUDA_ARRAY_DESCRIPTOR *description)
{
    if (!description)
        return CUDA_ERROR_INVALID_VALUE;
    return create_array(handle,
                        {description->Width, description->Height, 0, description->Format, description->NumChannels, 0});
}

/* Waits as cuMemFree does. */
DRIVER_CALL(cuArrayDestroy)(CUarray handle)
{
    Array array;
    CUresult result = asked_array(handle, array);
    if (result != CUDA_SUCCESS)
        return result;
    {
        std::lock_guard<std::mutex> lock(arrays().mutex);
        arrays().known.erase(handle);
    }
    return implementation_cuMemFree_v2(reinterpret_cast<CUdeviceptr>(array.image.memory));
}

DRIVER_CALL(cuArray3DGetDescriptor_v2)(CUDA_ARRAY3D_DESCRIPTOR *description, CUarray handle)
{
    Array array;
    CUresult result = asked_array(handle, array);
    if (result != CUDA_SUCCESS)
        return result;
    if (!description)
        return CUDA_ERROR_INVALID_VALUE;
    *description = array.description;
    return CUDA_SUCCESS;
}

DRIVER_CALL(cuArrayGetDescriptor_v2)(CUDA_ARRAY_DESCRIPTOR *description, CUarray handle)
{
    Array array;
    CUresult result = asked_array(handle, array);
    if (result != CUDA_SUCCESS)
        return result;
    if (!description)
        return CUDA_ERROR_INVALID_VALUE;
    const CUDA_ARRAY3D_DESCRIPTOR &whole = array.description;
    *description = {whole.Width, whole.Height, whole.Format, whole.NumChannels};
    return CUDA_SUCCESS;
}
