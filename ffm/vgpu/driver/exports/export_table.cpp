/* cuGetExportTable: private calls, which only closed-source libraries use. */
#include <cstdio>
#include <cstring>

#include "code/launch.h"
#include "contexts/wait.h"
#include "foundation/cuda_api.h"
#include "foundation/refusal.h"
#include "memory/copy.h"
#include "private_table.h"
#include "runtime_tables.h"

using namespace vgpu;

namespace
{

CUresult private_fetch(void *destination, CUdeviceptr source, std::size_t bytes, CUstream handle)
{
    Stream *stream;
    CUresult result = enter(handle, DefaultStream::legacy, stream);
    if (result != CUDA_SUCCESS)
        return result;
    GpuRange range = gpu_range(source);
    if (!destination || range.kind == MemoryKind::pageable || bytes > range.size)
        return CUDA_ERROR_INVALID_VALUE;
    std::vector<char> arrived(bytes);
    OperationReference operation = fetch(*stream, range, arrived.data(), bytes);
    wait_for_gpu({operation});
    std::memcpy(destination, arrived.data(), bytes);
    return stream->context->error;
}

CUresult private_launch(CUkernel handle, const std::uint32_t grid[3], const std::uint32_t block[3],
                        CUstream stream_handle, void **arguments)
{
    Stream *stream;
    CUresult result = enter(stream_handle, DefaultStream::legacy, stream);
    if (result != CUDA_SUCCESS)
        return result;
    Kernel *kernel = find_kernel(handle);
    const LaunchShape shape = {{grid[0], grid[1], grid[2]}, {block[0], block[1], block[2]}, 0, false};
    return kernel ? launch(*stream, *kernel, shape, arguments) : CUDA_ERROR_INVALID_HANDLE;
}

CUresult private_is_idle(CUstream handle, int *idle)
{
    Stream *stream;
    CUresult result = enter(handle, DefaultStream::legacy, stream);
    if (result != CUDA_SUCCESS)
        return result;
    *idle = is_idle(*stream);
    return CUDA_SUCCESS;
}

const PrivateTable private_table = {sizeof(PrivateTable), private_fetch, private_launch, private_is_idle};

void say_refused(const CUuuid &id)
{
    char text[2 * sizeof id.bytes + 1];
    for (std::size_t index = 0; index < sizeof id.bytes; ++index)
        std::snprintf(text + 2 * index, 3, "%02x", static_cast<unsigned char>(id.bytes[index]));
    refused("the private table %s", text);
}

} // namespace

DRIVER_CALL(cuGetExportTable)(const void **table, const CUuuid *id)
{
    if (!table || !id)
        return CUDA_ERROR_INVALID_VALUE;
    if (std::memcmp(id->bytes, private_table_id.bytes, sizeof id->bytes) == 0)
        *table = &private_table;
    else
        *table = runtime_table(*id);
    if (!*table)
        say_refused(*id);
    return *table ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}
