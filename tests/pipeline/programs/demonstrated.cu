/* A loop in which a library waits, a copy waits that its name calls asynchronous, and a report waits that is wanted. */
#include <cstdio>
#include <cstdlib>

#include <cuda_runtime_api.h>
#include <vblas.h>

enum { TURNS = 6, COUNT = 1 << 12 };

static void report(const float *device)
{
    float first;
    cudaMemcpy(&first, device, sizeof first, cudaMemcpyDeviceToHost); /* wanted */
    std::printf("%g\n", static_cast<double>(first));
}

int main()
{
    float *device = nullptr, sum;
    float *host = static_cast<float *>(std::calloc(COUNT, sizeof *host)); /* pageable */
    cudaStream_t stream;
    cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking);
    cudaMalloc(reinterpret_cast<void **>(&device), COUNT * sizeof *device);
    vblasHandle_t blas;
    vblasCreate(&blas);
    for (volatile int turn = 0; turn < TURNS; turn = turn + 1) {
        cudaMemsetAsync(device, 0, COUNT * sizeof *device, stream);
        cudaMemcpyAsync(host, device, COUNT * sizeof *host, cudaMemcpyDeviceToHost, stream); /* not asynchronous */
        vblasSasum(blas, COUNT, device, 1, &sum);                                            /* the library waits */
        report(device);
    }
    return 0;
}
