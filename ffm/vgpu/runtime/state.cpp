/* What the runtime knows about each thread: its context and its last error. */
#include <atomic>
#include <mutex>

#include "runtime_api.h"

namespace cudart
{

namespace
{

thread_local cudaError_t last_error = cudaSuccess;

/* Counts resets of the device. A thread has a context if it got one since the last reset. */
std::atomic<unsigned> generation{1};
thread_local unsigned thread_generation = 0;

/* The device that the thread last passed to cudaSetDevice. */
thread_local int chosen_device = 0;

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
        result = driver.cuDevicePrimaryCtxRetain(&context, chosen_device);
        if (result == CUDA_SUCCESS)
            result = driver.cuCtxSetCurrent(context);
    }
    if (result == CUDA_SUCCESS)
        thread_generation = present;
    return from(result);
}

cudaError_t use_device(int ordinal)
{
    CUcontext context = nullptr;
    cudaError_t error = context_of(ordinal, context);
    if (error != cudaSuccess)
        return error;
    chosen_device = ordinal;
    thread_generation = generation.load(std::memory_order_acquire);
    return from(legacy_driver().cuCtxSetCurrent(context));
}

cudaError_t used_device(int &ordinal)
{
    cudaError_t error = initialised();
    CUcontext context = nullptr;
    if (error == cudaSuccess)
        error = from(legacy_driver().cuCtxGetCurrent(&context));
    ordinal = chosen_device;
    return error == cudaSuccess && context ? from(legacy_driver().cuCtxGetDevice(&ordinal)) : error;
}

cudaError_t context_of(int ordinal, CUcontext &context)
{
    cudaError_t error = initialised();
    return error != cudaSuccess ? error : from(legacy_driver().cuDevicePrimaryCtxRetain(&context, ordinal));
}

/* "Not ready" is an answer and not stored as an error (CUDA Runtime API, cudaGetLastError). */
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

/* Destroys the primary context once its work is done. The next call creates a new one. */
RUNTIME_CALL cudaDeviceReset(void)
{
    int ordinal = 0;
    cudaError_t error = used_device(ordinal);
    if (error == cudaSuccess)
        error = from(legacy_driver().cuDevicePrimaryCtxReset(ordinal));
    if (error == cudaSuccess)
        error = from(legacy_driver().cuCtxSetCurrent(nullptr));
    generation.fetch_add(1, std::memory_order_release);
    return finish(error);
}

RUNTIME_CALL cudaDeviceSynchronize(void)
{
    return finish(call(legacy_driver().cuCtxSynchronize));
}
