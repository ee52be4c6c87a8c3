#include "arguments.h"

#include <cuda.h>
#include <stdbool.h>
#include <stddef.h>

/* One side of a two- or three-dimensional copy: its address, and whether that is host memory. */
typedef struct {
    uint64_t address;
    bool host;
} side;

static uint64_t at(const uint64_t *arguments, int8_t position)
{
    return position < 0 ? 0 : arguments[position];
}

static side copy_side(CUmemorytype type, const void *host, CUdeviceptr device, CUarray array, uint64_t offset)
{
    switch (type) {
    case CU_MEMORYTYPE_HOST:
        return (side){(uint64_t)host + offset, true};
    case CU_MEMORYTYPE_ARRAY:
        return (side){(uint64_t)array, false};
    default: /* device, or unified: determined by the address itself, which is looked up later */
        return (side){device + offset, false};
    }
}

static void set_sides(ffm_operation *operation, side source, side destination, uint64_t bytes)
{
    operation->source = source.address;
    operation->destination = destination.address;
    operation->bytes = bytes;
    operation->flags |= (uint16_t)((source.host ? FFM_OPERATION_HOST_SOURCE : 0) |
                                   (destination.host ? FFM_OPERATION_HOST_DESTINATION : 0));
}

static void copy_2d(const CUDA_MEMCPY2D *copy, ffm_operation *operation)
{
    set_sides(operation,
              copy_side(copy->srcMemoryType, copy->srcHost, copy->srcDevice, copy->srcArray,
                        copy->srcY * copy->srcPitch + copy->srcXInBytes),
              copy_side(copy->dstMemoryType, copy->dstHost, copy->dstDevice, copy->dstArray,
                        copy->dstY * copy->dstPitch + copy->dstXInBytes),
              copy->WidthInBytes * copy->Height);
}

static void copy_3d(const CUDA_MEMCPY3D *copy, ffm_operation *operation)
{
    uint64_t source = (copy->srcZ * copy->srcHeight + copy->srcY) * copy->srcPitch + copy->srcXInBytes;
    uint64_t destination = (copy->dstZ * copy->dstHeight + copy->dstY) * copy->dstPitch + copy->dstXInBytes;
    set_sides(operation, copy_side(copy->srcMemoryType, copy->srcHost, copy->srcDevice, copy->srcArray, source),
              copy_side(copy->dstMemoryType, copy->dstHost, copy->dstDevice, copy->dstArray, destination),
              copy->WidthInBytes * copy->Height * copy->Depth);
}

/* The address of linear memory; 0 for an array. */
static uint64_t resource(const CUDA_RESOURCE_DESC *described)
{
    if (described->resType == CU_RESOURCE_TYPE_LINEAR)
        return described->res.linear.devPtr;
    return described->resType == CU_RESOURCE_TYPE_PITCH2D ? described->res.pitch2D.devPtr : 0;
}

static void batch(const ffm_function *function, const uint64_t *arguments, ffm_operation *operation)
{
    const uint64_t *sizes = (const uint64_t *)at(arguments, function->bytes);
    uint64_t count = arguments[function->bytes + 1];
    uint64_t bytes = 0;
    for (uint64_t i = 0; sizes != NULL && i < count; i++)
        bytes += sizes[i];
    operation->bytes = bytes;
}

void ffm_arguments_before(const ffm_function *function, const uint64_t *arguments, ffm_operation *operation)
{
    operation->destination = at(arguments, function->destination);
    operation->source = at(arguments, function->kind == FFM_KIND_STREAM ? function->flags : function->source);
    operation->bytes = at(arguments, function->bytes);
    operation->stream = at(arguments, function->stream);
    operation->handle = at(arguments, function->handle);
    if (function->direction == FFM_DIRECTION_HOST_TO_DEVICE)
        operation->flags |= FFM_OPERATION_HOST_SOURCE;
    if (function->direction == FFM_DIRECTION_DEVICE_TO_HOST)
        operation->flags |= FFM_OPERATION_HOST_DESTINATION;

    /* A missing descriptor is left for the driver to refuse. */
    bool described = operation->source != 0;
    switch (function->shape) {
    case FFM_SHAPE_MEMSET_1D:
        operation->bytes *= function->element;
        break;
    case FFM_SHAPE_MEMSET_2D: /* (destination, pitch, value, width, height) */
        operation->bytes *= function->element * arguments[function->bytes + 1];
        break;
    case FFM_SHAPE_COPY_2D:
        if (described)
            copy_2d((const CUDA_MEMCPY2D *)operation->source, operation);
        break;
    case FFM_SHAPE_COPY_3D:
    case FFM_SHAPE_COPY_3D_PEER: /* the same fields at the same offsets, except for contexts */
        if (described)
            copy_3d((const CUDA_MEMCPY3D *)operation->source, operation);
        break;
    case FFM_SHAPE_BATCH:
        batch(function, arguments, operation);
        break;
    case FFM_SHAPE_NARROW:
        operation->bytes = (uint32_t)operation->bytes;
        break;
    case FFM_SHAPE_RESOURCE:
        if (described)
            operation->source = resource((const CUDA_RESOURCE_DESC *)operation->source);
        break;
    case FFM_SHAPE_LAUNCH_CONFIGURATION:
        if (described)
            operation->stream = (uint64_t)((const CUlaunchConfig *)operation->source)->hStream;
        operation->source = 0;
        break;
    default:
        break;
    }
}

void ffm_arguments_after(const ffm_function *function, const uint64_t *arguments, ffm_operation *operation)
{
    if (operation->result != CUDA_SUCCESS || function->result < 0 || function->kind == FFM_KIND_TIMING)
        return;
    const void *answer = (const void *)at(arguments, function->result);
    if (answer == NULL)
        return;
    if (function->shape == FFM_SHAPE_NARROW)
        operation->destination = *(const uint32_t *)answer;
    else
        operation->destination = *(const uint64_t *)answer;
    if (function->shape == FFM_SHAPE_PITCHED) /* (address, pitch, width, height, element) */
        operation->bytes = *(const uint64_t *)arguments[function->result + 1] * arguments[function->bytes + 1];
}
