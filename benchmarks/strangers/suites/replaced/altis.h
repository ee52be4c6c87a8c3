/* For Altis: calls of older toolkits that CUDA 13 gives other parameters. */
#pragma once

#ifdef __cplusplus
#include <cuda_runtime.h>

static inline cudaMemLocation location_of(int device)
{
    return device < 0 ? cudaMemLocation{cudaMemLocationTypeHost, 0}
                      : cudaMemLocation{cudaMemLocationTypeDevice, device};
}

static inline cudaError_t cudaMemPrefetchAsync(const void *address, size_t bytes, int device, cudaStream_t stream = 0)
{
    return cudaMemPrefetchAsync(address, bytes, location_of(device), 0, stream);
}

static inline cudaError_t cudaMemAdvise(const void *address, size_t bytes, cudaMemoryAdvise advice, int device)
{
    return cudaMemAdvise(address, bytes, advice, location_of(device));
}

static inline cudaError_t cudaGraphAddDependencies(cudaGraph_t graph, const cudaGraphNode_t *from,
                                                   const cudaGraphNode_t *to, size_t count)
{
    return cudaGraphAddDependencies(graph, from, to, nullptr, count);
}
#endif
