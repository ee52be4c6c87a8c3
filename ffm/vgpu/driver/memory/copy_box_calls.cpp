/* cuMemcpy2D and cuMemcpy3D: copies of boxes, in memory and in CUDA arrays. */
#include "image.h"
#include "stream_copy.h"

using namespace vgpu;

namespace
{

/* One side of CUDA_MEMCPY2D or CUDA_MEMCPY3D. */
struct Description {
    CUmemorytype type;
    const void *host;
    CUdeviceptr device;
    CUarray array;
    std::size_t x, y, z, pitch, height;
};

CUresult side_of(const Description &description, const CopyShape &shape, CopySide &side)
{
    if (description.type == CU_MEMORYTYPE_ARRAY)
        return array_side(description.array, description.x, description.y, description.z, shape, side);
    std::size_t pitch = description.pitch ? description.pitch : shape.width;
    std::size_t slice_pitch = pitch * (description.height ? description.height : shape.height);
    std::size_t offset = description.z * slice_pitch + description.y * pitch + description.x;
    switch (description.type) {
    case CU_MEMORYTYPE_HOST:
        if (!description.host)
            return CUDA_ERROR_INVALID_VALUE;
        side = host_side(static_cast<const char *>(description.host) + offset);
        break;
    case CU_MEMORYTYPE_DEVICE: {
        CUresult known = device_side(description.device + offset, side);
        if (known != CUDA_SUCCESS)
            return known;
        break;
    }
    case CU_MEMORYTYPE_UNIFIED:
        side = host_side(reinterpret_cast<const void *>(description.device + offset));
        break;
    default:
        return CUDA_ERROR_INVALID_VALUE;
    }
    side.row_pitch = pitch;
    side.slice_pitch = slice_pitch;
    return CUDA_SUCCESS;
}

CUresult sides_of(const Description &destination, const Description &source, const CopyShape &shape, CopySide &to,
                  CopySide &from)
{
    CUresult result = side_of(destination, shape, to);
    return result != CUDA_SUCCESS ? result : side_of(source, shape, from);
}

CUresult copy_2d(CUstream handle, DefaultStream default_stream, const CUDA_MEMCPY2D *box, bool synchronous)
{
    Stream *stream;
    CUresult result = enter(handle, default_stream, stream, Capturing::allowed);
    if (result != CUDA_SUCCESS)
        return result;
    if (!box)
        return CUDA_ERROR_INVALID_VALUE;
    CopySide to, from;
    CopyShape shape = {box->WidthInBytes, box->Height, 1};
    result = sides_of({box->dstMemoryType, box->dstHost, box->dstDevice, box->dstArray, box->dstXInBytes, box->dstY, 0,
                       box->dstPitch, 0},
                      {box->srcMemoryType, box->srcHost, box->srcDevice, box->srcArray, box->srcXInBytes, box->srcY, 0,
                       box->srcPitch, 0},
                      shape, to, from);
    return result != CUDA_SUCCESS ? result : copy(*stream, to, from, shape, synchronous);
}

CUresult copy_3d(CUstream handle, DefaultStream default_stream, const CUDA_MEMCPY3D *box, bool synchronous)
{
    Stream *stream;
    CUresult result = enter(handle, default_stream, stream, Capturing::allowed);
    if (result != CUDA_SUCCESS)
        return result;
    if (!box)
        return CUDA_ERROR_INVALID_VALUE;
    CopySide to, from;
    CopyShape shape;
    result = describe(*box, to, from, shape);
    return result != CUDA_SUCCESS ? result : copy(*stream, to, from, shape, synchronous);
}

} // namespace

CUresult vgpu::describe(const CUDA_MEMCPY3D &box, CopySide &destination, CopySide &source, CopyShape &shape)
{
    shape = {box.WidthInBytes, box.Height, box.Depth};
    return sides_of({box.dstMemoryType, box.dstHost, box.dstDevice, box.dstArray, box.dstXInBytes, box.dstY, box.dstZ,
                     box.dstPitch, box.dstHeight},
                    {box.srcMemoryType, box.srcHost, box.srcDevice, box.srcArray, box.srcXInBytes, box.srcY, box.srcZ,
                     box.srcPitch, box.srcHeight},
                    shape, destination, source);
}

DRIVER_CALL_PER_STREAM(cuMemcpy2D_v2, ptds, (const CUDA_MEMCPY2D *box), copy_2d(nullptr, default_stream, box, true))
DRIVER_CALL_PER_STREAM(cuMemcpy2DUnaligned_v2, ptds, (const CUDA_MEMCPY2D *box),
                       copy_2d(nullptr, default_stream, box, true))
DRIVER_CALL_PER_STREAM(cuMemcpy2DAsync_v2, ptsz, (const CUDA_MEMCPY2D *box, CUstream stream),
                       copy_2d(stream, default_stream, box, false))
DRIVER_CALL_PER_STREAM(cuMemcpy3D_v2, ptds, (const CUDA_MEMCPY3D *box), copy_3d(nullptr, default_stream, box, true))
DRIVER_CALL_PER_STREAM(cuMemcpy3DAsync_v2, ptsz, (const CUDA_MEMCPY3D *box, CUstream stream),
                       copy_3d(stream, default_stream, box, false))
