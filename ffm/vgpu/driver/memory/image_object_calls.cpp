/* cuTexObject… and cuSurfObject…: textures of arrays, device memory and pinned memory, and surfaces of arrays. */
#include <array>
#include <atomic>
#include <mutex>

#include "foundation/refusal.h"
#include "image.h"

using namespace vgpu;

namespace
{

/* More than any program uses at once. A handle is the object's number, counted from 1. */
constexpr std::size_t most_objects = 1 << 16;

struct ImageObjects {
    std::mutex mutex;
    std::array<std::atomic<ImageObject *>, most_objects> alive{};
    std::size_t next = 0;
};

ImageObjects &objects()
{
    static ImageObjects *instance = new ImageObjects;
    return *instance;
}

CUresult add_object(const ImageObject &object, std::uint64_t &number)
{
    ImageObjects &table = objects();
    std::lock_guard<std::mutex> lock(table.mutex);
    for (std::size_t tried = 0; tried < most_objects; ++tried) {
        std::size_t place = table.next++ % most_objects;
        if (table.alive[place])
            continue;
        table.alive[place] = new ImageObject(object);
        number = place + 1;
        return CUDA_SUCCESS;
    }
    return CUDA_ERROR_OUT_OF_MEMORY;
}

CUresult remove_object(std::uint64_t number, bool is_surface)
{
    CUresult result = enter();
    if (result != CUDA_SUCCESS)
        return result;
    std::lock_guard<std::mutex> lock(objects().mutex);
    const ImageObject *object = find_image_object(number);
    if (!object || object->is_surface != is_surface)
        return CUDA_ERROR_INVALID_VALUE;
    delete objects().alive[number - 1].exchange(nullptr);
    return CUDA_SUCCESS;
}

/* Linear memory as texels. Managed and registered memory are refused, because they can move or be unmapped. */
CUresult memory_image(CUdeviceptr address, std::size_t bytes, Image &image)
{
    if (channel_bytes(image.format) == 0 || (image.channels != 1 && image.channels != 2 && image.channels != 4))
        return CUDA_ERROR_INVALID_VALUE;
    GpuRange range = gpu_range(address);
    if (range.kind == MemoryKind::pageable || range.size < bytes)
        return CUDA_ERROR_INVALID_VALUE;
    if (range.kind != MemoryKind::device && range.kind != MemoryKind::pinned) {
        refused("a texture of memory that is neither device memory nor pinned by the driver");
        return CUDA_ERROR_NOT_SUPPORTED;
    }
    image.memory = range.gpu_view;
    return CUDA_SUCCESS;
}

CUresult describe_image(const CUDA_RESOURCE_DESC &resource, Image &image)
{
    switch (resource.resType) {
    case CU_RESOURCE_TYPE_ARRAY: {
        Array array;
        if (!find_array(resource.res.array.hArray, array))
            return CUDA_ERROR_INVALID_HANDLE;
        image = array.image;
        return CUDA_SUCCESS;
    }
    case CU_RESOURCE_TYPE_LINEAR: {
        const auto &linear = resource.res.linear;
        image.format = linear.format;
        image.channels = linear.numChannels;
        image.linear = true;
        CUresult result = memory_image(linear.devPtr, linear.sizeInBytes, image);
        if (result == CUDA_SUCCESS)
            image.width = linear.sizeInBytes / image.texel_bytes();
        return result;
    }
    case CU_RESOURCE_TYPE_PITCH2D: {
        const auto &pitched = resource.res.pitch2D;
        image.format = pitched.format;
        image.channels = pitched.numChannels;
        image.width = pitched.width;
        image.height = pitched.height;
        image.row_pitch = pitched.pitchInBytes;
        if (pitched.width == 0 || pitched.height == 0 || pitched.width * image.texel_bytes() > pitched.pitchInBytes)
            return CUDA_ERROR_INVALID_VALUE;
        return memory_image(pitched.devPtr,
                            (pitched.height - 1) * pitched.pitchInBytes + pitched.width * image.texel_bytes(), image);
    }
    default:
        refused("a texture of a mipmapped array");
        return CUDA_ERROR_NOT_SUPPORTED;
    }
}

CUresult object_of(const CUDA_RESOURCE_DESC *resource, ImageObject &object)
{
    Context *context;
    CUresult result = enter(context);
    if (result != CUDA_SUCCESS)
        return result;
    if (!resource)
        return CUDA_ERROR_INVALID_VALUE;
    object.resource = *resource;
    object.context = reinterpret_cast<CUcontext>(context);
    return describe_image(*resource, object.image);
}

/* Only texels that are read as floating-point numbers can be filtered. */
bool can_be_filtered(const ImageObject &object)
{
    bool promoted = channel_bytes(object.image.format) < 4 && (object.texture.flags & CU_TRSF_READ_AS_INTEGER) == 0;
    return !is_integer(object.image.format) || promoted;
}

CUresult create_texture(CUtexObject *handle, const CUDA_RESOURCE_DESC *resource, const CUDA_TEXTURE_DESC *texture,
                        const CUDA_RESOURCE_VIEW_DESC *view)
{
    ImageObject object;
    CUresult result = object_of(resource, object);
    if (result != CUDA_SUCCESS)
        return result;
    if (!handle || !texture)
        return CUDA_ERROR_INVALID_VALUE;
    object.texture = *texture;
    if (view || (texture->flags & (CU_TRSF_SRGB | CU_TRSF_SEAMLESS_CUBEMAP))) {
        refused("a texture with %s", view ? "a view of another format" : "sRGB values");
        return CUDA_ERROR_NOT_SUPPORTED;
    }
    if (texture->filterMode == CU_TR_FILTER_MODE_LINEAR && !can_be_filtered(object))
        return CUDA_ERROR_INVALID_VALUE;
    std::uint64_t number;
    result = add_object(object, number);
    if (result == CUDA_SUCCESS)
        *handle = number;
    return result;
}

CUresult create_surface(CUsurfObject *handle, const CUDA_RESOURCE_DESC *resource)
{
    ImageObject object;
    CUresult result = object_of(resource, object);
    if (result != CUDA_SUCCESS)
        return result;
    Array array;
    if (!handle || resource->resType != CU_RESOURCE_TYPE_ARRAY || !find_array(resource->res.array.hArray, array) ||
        (array.description.Flags & CUDA_ARRAY3D_SURFACE_LDST) == 0)
        return CUDA_ERROR_INVALID_VALUE;
    object.is_surface = true;
    std::uint64_t number;
    result = add_object(object, number);
    if (result == CUDA_SUCCESS)
        *handle = number;
    return result;
}

/* Copies one of the descriptions that the object was made from. */
template <typename Description>
CUresult tell(Description *told, std::uint64_t number, bool is_surface, Description ImageObject::*description)
{
    CUresult result = enter();
    if (result != CUDA_SUCCESS)
        return result;
    std::lock_guard<std::mutex> lock(objects().mutex);
    const ImageObject *object = find_image_object(number);
    if (!told || !object || object->is_surface != is_surface)
        return CUDA_ERROR_INVALID_VALUE;
    *told = object->*description;
    return CUDA_SUCCESS;
}

} // namespace

const ImageObject *vgpu::find_image_object(std::uint64_t number)
{
    return number - 1 < most_objects ? objects().alive[number - 1].load(std::memory_order_acquire) : nullptr;
}

void vgpu::release_image_objects(CUcontext context)
{
    std::lock_guard<std::mutex> lock(objects().mutex);
    for (auto &place : objects().alive) {
        ImageObject *object = place.load();
        if (!object || object->context != context)
            continue;
        place = nullptr;
        delete object;
    }
}

void vgpu::empty_image_objects(const char *start, std::size_t size)
{
    std::lock_guard<std::mutex> lock(objects().mutex);
    for (auto &place : objects().alive) {
        ImageObject *object = place.load();
        if (object && object->image.memory >= start && object->image.memory < start + size)
            object->image.memory = nullptr;
    }
}

DRIVER_CALL(cuTexObjectCreate)(CUtexObject *handle, const CUDA_RESOURCE_DESC *resource,
                               const CUDA_TEXTURE_DESC *texture, const CUDA_RESOURCE_VIEW_DESC *view)
{
    return create_texture(handle, resource, texture, view);
}

DRIVER_CALL(cuTexObjectDestroy)(CUtexObject handle)
{
    return remove_object(handle, false);
}

DRIVER_CALL(cuTexObjectGetResourceDesc)(CUDA_RESOURCE_DESC *resource, CUtexObject handle)
{
    return tell(resource, handle, false, &ImageObject::resource);
}

DRIVER_CALL(cuTexObjectGetTextureDesc)(CUDA_TEXTURE_DESC *texture, CUtexObject handle)
{
    return tell(texture, handle, false, &ImageObject::texture);
}

DRIVER_CALL(cuSurfObjectCreate)(CUsurfObject *handle, const CUDA_RESOURCE_DESC *resource)
{
    return create_surface(handle, resource);
}

DRIVER_CALL(cuSurfObjectDestroy)(CUsurfObject handle)
{
    return remove_object(handle, true);
}

DRIVER_CALL(cuSurfObjectGetResourceDesc)(CUDA_RESOURCE_DESC *resource, CUsurfObject handle)
{
    return tell(resource, handle, true, &ImageObject::resource);
}
