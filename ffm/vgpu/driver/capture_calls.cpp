/* Questions about stream capture. Nothing is ever captured: graphs do not exist on the virtual GPU. */
#include "context.h"

using namespace vgpu;

namespace
{

CUresult not_capturing(CUstream handle, DefaultStream default_stream, CUstreamCaptureStatus *status)
{
    Stream *stream;
    CUresult result = enter(handle, default_stream, stream);
    if (result != CUDA_SUCCESS)
        return result;
    if (!status)
        return CUDA_ERROR_INVALID_VALUE;
    *status = CU_STREAM_CAPTURE_STATUS_NONE;
    return CUDA_SUCCESS;
}

thread_local CUstreamCaptureMode capture_mode = CU_STREAM_CAPTURE_MODE_GLOBAL;

} // namespace

DRIVER_CALL_PER_STREAM(cuStreamIsCapturing, ptsz, (CUstream stream, CUstreamCaptureStatus *status),
                       not_capturing(stream, default_stream, status))
DRIVER_CALL_PER_STREAM(cuStreamGetCaptureInfo, ptsz, (CUstream stream, CUstreamCaptureStatus *status, cuuint64_t *),
                       not_capturing(stream, default_stream, status))
DRIVER_CALL_PER_STREAM(cuStreamGetCaptureInfo_v2, ptsz,
                       (CUstream stream, CUstreamCaptureStatus *status, cuuint64_t *, CUgraph *, const CUgraphNode **,
                        size_t *),
                       not_capturing(stream, default_stream, status))
DRIVER_CALL_PER_STREAM(cuStreamGetCaptureInfo_v3, ptsz,
                       (CUstream stream, CUstreamCaptureStatus *status, cuuint64_t *, CUgraph *, const CUgraphNode **,
                        const CUgraphEdgeData **, size_t *),
                       not_capturing(stream, default_stream, status))

DRIVER_CALL(cuThreadExchangeStreamCaptureMode)(CUstreamCaptureMode *mode)
{
    CUresult result = enter();
    if (result != CUDA_SUCCESS)
        return result;
    if (!mode || *mode < CU_STREAM_CAPTURE_MODE_GLOBAL || *mode > CU_STREAM_CAPTURE_MODE_RELAXED)
        return CUDA_ERROR_INVALID_VALUE;
    CUstreamCaptureMode before = capture_mode;
    capture_mode = *mode;
    *mode = before;
    return CUDA_SUCCESS;
}
