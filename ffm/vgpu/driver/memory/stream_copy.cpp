#include "stream_copy.h"

#include "foundation/configuration.h"
#include "graphs/graph.h"

namespace vgpu
{

CUresult copy(Stream &stream, const CopySide &destination, const CopySide &source, const CopyShape &shape,
              bool synchronous)
{
    if (bytes_of(shape) == 0)
        return CUDA_SUCCESS;
    CUresult valid = check_copy(destination, source, shape);
    if (valid != CUDA_SUCCESS)
        return valid;
    const Configuration &settings = configuration();
    bool reads_back = is_read_back(destination, source, synchronous);
    CallCost cost(microseconds(reads_back ? settings.call_read_back : settings.call_copy));
    if (stream.capture) {
        if (synchronous)
            return refuse_capture(stream);
        return capture(stream, CopyNode{destination, source, shape});
    }
    enqueue_copy(stream, destination, source, shape, synchronous);
    if (synchronous)
        stream.context->printed.show();
    return stream.context->error;
}

} // namespace vgpu
