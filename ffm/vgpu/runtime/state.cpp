/* What the runtime knows about each thread: its context and its last error. */
#include <atomic>
#include <mutex>

#include "runtime_api.h"

namespace cudart
{

namespace
{

thread_local cudaError_t last_error = cudaSuccess;

/* A thread has a context if it received one since the device was last reset. */
std::atomic<unsigned> generation{1};
thread_local unsigned thread_generation = 0;

} // namespace

cudaError_t initialised()
{
    CUresult result = load_driver();
    if (result != CUDA_SUCCESS)
        return result == CUDA_ERROR_STUB_LIBRARY ? cudaErrorInsufficientDriver : from(result);
    static std::once_flag once;
    static CUresult initialisation;
    std::call_once(once, [] { initialisation = legacy_driver().cuInit(0); });
    return from(initialisation);
}

cudaError_t ready()
{
    unsigned present = generation.load(std::memory_order_acquire);
    if (thread_generation == present)
        return cudaSuccess;
    cudaError_t error = initialised();
    if (error != cudaSuccess)
        return error;
    const DriverTable &driver = legacy_driver();
    CUcontext context = nullptr;
    CUresult result = driver.cuCtxGetCurrent(&context);
    if (result == CUDA_SUCCESS && !context) {
        result = driver.cuDevicePrimaryCtxRetain(&context, 0);
        if (result == CUDA_SUCCESS)
            result = driver.cuCtxSetCurrent(context);
    }
    if (result == CUDA_SUCCESS)
        thread_generation = present;
    return from(result);
}

/* "Not ready" is an answer, not an error (CUDA Runtime API, cudaGetLastError). */
cudaError_t finish(cudaError_t error)
{
    if (error != cudaSuccess && error != cudaErrorNotReady)
        last_error = error;
    return error;
}

} // namespace cudart

using namespace cudart;

RUNTIME_CALL cudaGetLastError(void)
{
    cudaError_t error = last_error;
    last_error = cudaSuccess;
    return error;
}

RUNTIME_CALL cudaPeekAtLastError(void)
{
    return last_error;
}

/* Destroys the primary context after its work; the next call creates a new one. */
RUNTIME_CALL cudaDeviceReset(void)
{
    cudaError_t error = initialised();
    if (error == cudaSuccess)
        error = from(legacy_driver().cuDevicePrimaryCtxReset(0));
    if (error == cudaSuccess)
        error = from(legacy_driver().cuCtxSetCurrent(nullptr));
    generation.fetch_add(1, std::memory_order_release);
    return finish(error);
}

RUNTIME_CALL cudaDeviceSynchronize(void)
{
    return finish(call(legacy_driver().cuCtxSynchronize));
}
