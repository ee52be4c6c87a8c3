/* CUDA's own runtime header with the per-thread forms, and the macros that define our functions.
 *
 * A definition that differs from the header's prototype does not compile, because both have C linkage.
 */
#pragma once

#define __CUDA_API_VERSION_INTERNAL
#include <cuda_runtime_api.h>

#include "driver_table.h"

#define RUNTIME_CALL extern "C" __attribute__((visibility("default"))) cudaError_t

/* Defines a call and its per-thread-default-stream twin (suffix ptsz or ptds). In `expression`, `driver` is the table
 * of driver entries for that variant. */
#define RUNTIME_CALL_PER_STREAM(name, suffix, parameters, expression)                                                  \
    RUNTIME_CALL name parameters                                                                                       \
    {                                                                                                                  \
        [[maybe_unused]] const cudart::DriverTable &driver = cudart::legacy_driver();                                  \
        return cudart::finish(expression);                                                                             \
    }                                                                                                                  \
    RUNTIME_CALL name##_##suffix parameters                                                                            \
    {                                                                                                                  \
        [[maybe_unused]] const cudart::DriverTable &driver = cudart::per_thread_driver();                              \
        return cudart::finish(expression);                                                                             \
    }

namespace cudart
{

/* Loads the driver, and gives the calling thread the primary context if it has none. Calls that work on the device
 * check this first. */
cudaError_t ready();

/* Loads and initializes the driver without a context. */
cudaError_t initialised();

/* Makes the device's primary context the calling thread's, now and after a reset. */
cudaError_t use_device(int ordinal);

/* The device that the calling thread uses, or will. */
cudaError_t used_device(int &ordinal);

/* The device's primary context, which is made where it is absent. */
cudaError_t context_of(int ordinal, CUcontext &context);

/* Remembers an error for cudaGetLastError, and returns it. */
cudaError_t finish(cudaError_t error);

/* Driver and runtime give the same numbers to the same errors (`cudaError` in driver_types.h). */
inline cudaError_t from(CUresult result)
{
    return static_cast<cudaError_t>(result);
}

/* The result of a driver call for a thread that is ready. */
template <typename Entry, typename... Arguments> cudaError_t call(Entry entry, Arguments... arguments)
{
    cudaError_t error = ready();
    return error != cudaSuccess ? error : from(entry(arguments...));
}

inline CUdeviceptr device(const void *pointer)
{
    return reinterpret_cast<CUdeviceptr>(pointer);
}

/* Streams and events are the driver's own. */
inline CUstream stream_of(cudaStream_t stream)
{
    return reinterpret_cast<CUstream>(stream);
}
inline CUevent event_of(cudaEvent_t event)
{
    return reinterpret_cast<CUevent>(event);
}

} // namespace cudart
