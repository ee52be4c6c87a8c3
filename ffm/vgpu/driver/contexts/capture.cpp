/* How a stream capture affects calls on that stream and on others. */
#include "context.h"

namespace vgpu
{

CUresult refuse_capture(Stream &stream)
{
    std::lock_guard<std::mutex> lock(scheduler().mutex);
    if (stream.capture)
        stream.capture->usable = false;
    return CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;
}

CUresult captured_state(Stream &stream, Capturing capturing)
{
    std::unique_lock<std::mutex> lock(scheduler().mutex);
    if (&stream == &stream.context->legacy) {
        for (const Stream *other : stream.context->streams) {
            if (other->capture && (other->flags & CU_STREAM_NON_BLOCKING) == 0)
                return CUDA_ERROR_STREAM_CAPTURE_IMPLICIT;
        }
    }
    if (!stream.capture || capturing == Capturing::allowed)
        return CUDA_SUCCESS;
    lock.unlock();
    return refuse_capture(stream);
}

void leave_capture(Stream &stream)
{
    if (!stream.capture)
        return;
    Capture &capture = *stream.capture;
    capture.streams.erase(&stream);
    capture.left.insert(capture.left.end(), stream.capture_tail.begin(), stream.capture_tail.end());
    if (capture.origin == &stream) {
        capture.origin = nullptr;
        capture.usable = false;
    }
    --stream.context->capturing;
}

} // namespace vgpu
