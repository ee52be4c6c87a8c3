/* Variables of device code, identified by their host variables. */
#include "copy.h"
#include "registry.h"

using namespace cudart;

namespace
{

/* Finds `bytes` bytes at `offset` of the variable. */
cudaError_t part_of(const void *symbol, std::size_t bytes, std::size_t offset, void *&part)
{
    cudaError_t error = ready();
    CUdeviceptr address = 0;
    std::size_t size = 0;
    if (error == cudaSuccess)
        error = find_variable(symbol, address, size);
    if (error == cudaSuccess && (offset > size || bytes > size - offset))
        error = cudaErrorInvalidValue;
    part = reinterpret_cast<void *>(address + offset);
    return error;
}

cudaError_t copy_to(const DriverTable &driver, const void *symbol, const void *source, std::size_t bytes,
                    std::size_t offset, cudaMemcpyKind kind)
{
    void *part;
    cudaError_t error = part_of(symbol, bytes, offset, part);
    return error != cudaSuccess ? error : copy(driver, part, source, bytes, kind);
}

cudaError_t copy_from(const DriverTable &driver, void *destination, const void *symbol, std::size_t bytes,
                      std::size_t offset, cudaMemcpyKind kind)
{
    void *part;
    cudaError_t error = part_of(symbol, bytes, offset, part);
    return error != cudaSuccess ? error : copy(driver, destination, part, bytes, kind);
}

cudaError_t copy_to_async(const DriverTable &driver, const void *symbol, const void *source, std::size_t bytes,
                          std::size_t offset, cudaMemcpyKind kind, cudaStream_t stream)
{
    void *part;
    cudaError_t error = part_of(symbol, bytes, offset, part);
    return error != cudaSuccess ? error : copy_async(driver, part, source, bytes, kind, stream);
}

cudaError_t copy_from_async(const DriverTable &driver, void *destination, const void *symbol, std::size_t bytes,
                            std::size_t offset, cudaMemcpyKind kind, cudaStream_t stream)
{
    void *part;
    cudaError_t error = part_of(symbol, bytes, offset, part);
    return error != cudaSuccess ? error : copy_async(driver, destination, part, bytes, kind, stream);
}

} // namespace

RUNTIME_CALL cudaGetSymbolAddress(void **address, const void *symbol)
{
    return finish(address ? part_of(symbol, 0, 0, *address) : cudaErrorInvalidValue);
}

RUNTIME_CALL cudaGetSymbolSize(size_t *size, const void *symbol)
{
    CUdeviceptr address;
    cudaError_t error = size ? ready() : cudaErrorInvalidValue;
    return finish(error != cudaSuccess ? error : find_variable(symbol, address, *size));
}

RUNTIME_CALL_PER_STREAM(cudaMemcpyToSymbol, ptds,
                        (const void *symbol, const void *source, size_t bytes, size_t offset, cudaMemcpyKind kind),
                        copy_to(driver, symbol, source, bytes, offset, kind))
RUNTIME_CALL_PER_STREAM(cudaMemcpyFromSymbol, ptds,
                        (void *destination, const void *symbol, size_t bytes, size_t offset, cudaMemcpyKind kind),
                        copy_from(driver, destination, symbol, bytes, offset, kind))
RUNTIME_CALL_PER_STREAM(cudaMemcpyToSymbolAsync, ptsz,
                        (const void *symbol, const void *source, size_t bytes, size_t offset, cudaMemcpyKind kind,
                         cudaStream_t stream),
                        copy_to_async(driver, symbol, source, bytes, offset, kind, stream))
RUNTIME_CALL_PER_STREAM(cudaMemcpyFromSymbolAsync, ptsz,
                        (void *destination, const void *symbol, size_t bytes, size_t offset, cudaMemcpyKind kind,
                         cudaStream_t stream),
                        copy_from_async(driver, destination, symbol, bytes, offset, kind, stream))
