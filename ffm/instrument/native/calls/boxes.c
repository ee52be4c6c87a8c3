#include "boxes.h"

#include <cuda.h>
#include <stddef.h>

#include "blocks.h"

typedef int (*attribute_function)(void *, uint32_t, uint64_t);

static attribute_function pointer_attribute;

void ffm_boxes_ask(void *function)
{
    pointer_attribute = (attribute_function)(uintptr_t)function;
}

/* If a call does not say what an address is, the driver knows: memory that it does not own is pageable. */
static bool is_host(uint64_t address)
{
    if (ffm_blocks_hold(address))
        return true;
    uint32_t type = 0;
    if (pointer_attribute == NULL || pointer_attribute(&type, CU_POINTER_ATTRIBUTE_MEMORY_TYPE, address) != 0)
        return pointer_attribute != NULL;
    return type == CU_MEMORYTYPE_HOST;
}

bool ffm_boxes_of_driver(uint64_t address)
{
    uint32_t type = 0;
    return pointer_attribute != NULL && pointer_attribute(&type, CU_POINTER_ATTRIBUTE_MEMORY_TYPE, address) == 0;
}

bool ffm_boxes_managed(uint64_t address, uint64_t *bytes)
{
    uint32_t managed = 0;
    *bytes = 0;
    if (pointer_attribute == NULL || pointer_attribute(&managed, CU_POINTER_ATTRIBUTE_IS_MANAGED, address) != 0)
        return false;
    if (managed != 0 && pointer_attribute(bytes, CU_POINTER_ATTRIBUTE_RANGE_SIZE, address) != 0)
        *bytes = 0;
    return managed != 0;
}

static uint64_t at(const uint64_t *arguments, int8_t position)
{
    return position < 0 ? 0 : arguments[position];
}

static ffm_box plain(uint64_t address, uint64_t bytes, bool host)
{
    return (ffm_box){address, bytes, bytes, 1, bytes, 1, host || (address != 0 && ffm_blocks_hold(address))};
}

static ffm_box rows(uint64_t address, uint64_t width, uint64_t height, uint64_t depth, uint64_t pitch, uint64_t slice)
{
    if (height == 0)
        height = 1;
    if (depth == 0)
        depth = 1;
    if (pitch == width || height == 1) { /* without gaps a slice is one row */
        width *= height;
        height = 1;
        pitch = width;
    }
    if (depth > 1 && height == 1 && slice == width) {
        width *= depth;
        depth = 1;
    }
    return (ffm_box){address, width, pitch, height, depth > 1 ? slice : height * pitch, depth, false};
}

static ffm_box side(CUmemorytype type, const void *host, CUdeviceptr device, ffm_box at_zero)
{
    ffm_box box = at_zero;
    switch (type) {
    case CU_MEMORYTYPE_HOST:
        box.address += (uint64_t)host;
        box.host = true;
        break;
    case CU_MEMORYTYPE_ARRAY:
        box.address = 0;
        break;
    case CU_MEMORYTYPE_UNIFIED:
        box.address += device;
        box.host = is_host(box.address);
        break;
    default:
        box.address += device;
        box.host = ffm_blocks_hold(box.address);
        break;
    }
    return box;
}

static ffm_copy copy_2d(const CUDA_MEMCPY2D *copy)
{
    ffm_box source =
        rows(copy->srcY * copy->srcPitch + copy->srcXInBytes, copy->WidthInBytes, copy->Height, 1, copy->srcPitch, 0);
    ffm_box destination =
        rows(copy->dstY * copy->dstPitch + copy->dstXInBytes, copy->WidthInBytes, copy->Height, 1, copy->dstPitch, 0);
    return (ffm_copy){side(copy->srcMemoryType, copy->srcHost, copy->srcDevice, source),
                      side(copy->dstMemoryType, copy->dstHost, copy->dstDevice, destination)};
}

static ffm_copy copy_3d(const CUDA_MEMCPY3D *copy)
{
    ffm_box source =
        rows((copy->srcZ * copy->srcHeight + copy->srcY) * copy->srcPitch + copy->srcXInBytes, copy->WidthInBytes,
             copy->Height, copy->Depth, copy->srcPitch, copy->srcHeight * copy->srcPitch);
    ffm_box destination =
        rows((copy->dstZ * copy->dstHeight + copy->dstY) * copy->dstPitch + copy->dstXInBytes, copy->WidthInBytes,
             copy->Height, copy->Depth, copy->dstPitch, copy->dstHeight * copy->dstPitch);
    return (ffm_copy){side(copy->srcMemoryType, copy->srcHost, copy->srcDevice, source),
                      side(copy->dstMemoryType, copy->dstHost, copy->dstDevice, destination)};
}

ffm_copy ffm_copy_described(const void *descriptor)
{
    return copy_3d(descriptor);
}

#if CUDA_VERSION >= 12080
static ffm_box operand(const CUmemcpy3DOperand *operand, const CUextent3D *extent)
{
    if (operand->type != CU_MEMCPY_OPERAND_TYPE_POINTER)
        return (ffm_box){.width = extent->width, .height = 1, .depth = 1};
    uint64_t length = operand->op.ptr.rowLength != 0 ? operand->op.ptr.rowLength : extent->width;
    uint64_t height = operand->op.ptr.layerHeight != 0 ? operand->op.ptr.layerHeight : extent->height;
    ffm_box box = rows(operand->op.ptr.ptr, extent->width, extent->height, extent->depth, length, length * height);
    box.host = is_host(box.address);
    return box;
}
#endif

static bool batch_3d(const ffm_function *function, const uint64_t *arguments, uint32_t place, ffm_copy *copy)
{
#if CUDA_VERSION >= 12080
    /* If there is a count, it precedes the descriptors in the arguments; otherwise there is a single copy. */
    uint64_t count = function->source > 0 ? arguments[function->source - 1] : 1;
    const CUDA_MEMCPY3D_BATCH_OP *copies = (const CUDA_MEMCPY3D_BATCH_OP *)arguments[function->source];
    if (copies == NULL || place >= count)
        return false;
    *copy = (ffm_copy){operand(&copies[place].src, &copies[place].extent),
                       operand(&copies[place].dst, &copies[place].extent)};
    return true;
#else
    (void)function, (void)arguments, (void)place, (void)copy;
    return false;
#endif
}

static bool batch(const ffm_function *function, const uint64_t *arguments, uint32_t place, ffm_copy *copy)
{
    const uint64_t *destinations = (const uint64_t *)at(arguments, function->destination);
    const uint64_t *sources = (const uint64_t *)at(arguments, function->source);
    const uint64_t *sizes = (const uint64_t *)at(arguments, function->bytes);
    if (destinations == NULL || sources == NULL || sizes == NULL || place >= arguments[function->bytes + 1])
        return false;
    *copy = (ffm_copy){plain(sources[place], sizes[place], is_host(sources[place])),
                       plain(destinations[place], sizes[place], is_host(destinations[place]))};
    return true;
}

static ffm_copy linear(const ffm_function *function, const ffm_operation *operation)
{
    bool generic = function->direction == FFM_DIRECTION_GENERIC;
    bool from_host = generic ? is_host(operation->source) : function->direction == FFM_DIRECTION_HOST_TO_DEVICE;
    bool to_host = generic ? is_host(operation->destination) : function->direction == FFM_DIRECTION_DEVICE_TO_HOST;
    return (ffm_copy){plain(operation->source, operation->bytes, from_host),
                      plain(operation->destination, operation->bytes, to_host)};
}

static ffm_copy set(const ffm_function *function, const uint64_t *arguments, const ffm_operation *operation)
{
    ffm_copy copy = {.source = {.height = 1, .depth = 1}};
    if (function->shape == FFM_SHAPE_MEMSET_2D) { /* (destination, pitch, value, width, height) */
        copy.destination = rows(operation->destination, arguments[function->bytes] * function->element,
                                arguments[function->bytes + 1], 1, arguments[function->destination + 1], 0);
        copy.destination.host = ffm_blocks_hold(operation->destination);
    } else {
        copy.destination = plain(operation->destination, operation->bytes, false);
    }
    return copy;
}

bool ffm_copy_of(const ffm_function *function, const uint64_t *arguments, const ffm_operation *operation,
                 uint32_t place, ffm_copy *copy)
{
    if (function->shape == FFM_SHAPE_BATCH)
        return batch(function, arguments, place, copy);
    if (function->shape == FFM_SHAPE_BATCH_3D)
        return batch_3d(function, arguments, place, copy);
    if (place > 0 || (function->kind != FFM_KIND_TRANSFER && function->kind != FFM_KIND_SET) ||
        function->shape == FFM_SHAPE_OPAQUE)
        return false;
    const void *descriptor = function->source < 0 ? NULL : (const void *)arguments[function->source];
    if (function->kind == FFM_KIND_SET) {
        *copy = set(function, arguments, operation);
    } else if (function->shape == FFM_SHAPE_COPY_2D) {
        if (descriptor == NULL)
            return false;
        *copy = copy_2d(descriptor);
    } else if (function->shape == FFM_SHAPE_COPY_3D || function->shape == FFM_SHAPE_COPY_3D_PEER) {
        if (descriptor == NULL)
            return false;
        *copy = copy_3d(descriptor); /* the peer's has the same fields at the same offsets, except for contexts */
    } else if (function->direction == FFM_DIRECTION_GENERIC && function->shape == FFM_SHAPE_NARROW) {
        return false; /* the descriptors of CUDA 2 */
    } else {
        *copy = linear(function, operation);
    }
    return copy->destination.width != 0;
}

/* A copy between two places on the host that the GPU cannot both access (CUDA Driver API, "API synchronization
 * behavior": fully synchronous with respect to the host). Managed memory counts as the device's. */
static bool on_cpu(const ffm_copy *copy)
{
    bool from_block = ffm_blocks_hold(copy->source.address), to_block = ffm_blocks_hold(copy->destination.address);
    return copy->source.host && copy->destination.host && !(from_block && to_block) &&
           !ffm_blocks_managed(copy->source.address) && !ffm_blocks_managed(copy->destination.address);
}

void ffm_boxes_mark(const ffm_function *function, const uint64_t *arguments, ffm_operation *operation)
{
    ffm_copy copy;
    if (function->direction != FFM_DIRECTION_GENERIC || !ffm_copy_of(function, arguments, operation, 0, &copy))
        return;
    operation->flags |= (uint16_t)((copy.source.host ? FFM_OPERATION_HOST_SOURCE : 0) |
                                   (copy.destination.host ? FFM_OPERATION_HOST_DESTINATION : 0) |
                                   (!function->asynchronous && on_cpu(&copy) ? FFM_OPERATION_ON_CPU : 0));
}
