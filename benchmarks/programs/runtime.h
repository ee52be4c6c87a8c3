/* Programs that call the runtime end at its first error. */
#include <cstdio>
#include <cstdlib>

#include <cuda_runtime_api.h>

static inline void check(cudaError_t error)
{
    if (error != cudaSuccess) {
        std::fprintf(stderr, "%s\n", cudaGetErrorString(error));
        std::exit(1);
    }
}
