/* Two threads, each with a GPU of its own, and the thread that starts and joins them.
 *
 * Arguments: milliseconds of CPU work before the first thread's kernel, and before the second thread's. A thread
 * between them and the main one, which calls nothing of CUDA, starts and joins the second. */
#include <chrono>
#include <cstdlib>
#include <thread>

#include "portable_kernel.h"

__global__ void first_kernel(int *data)
{
    data[0] = 1;
}
PORTABLE_KERNEL(first_kernel);

__global__ void second_kernel(int *data)
{
    data[0] = 2;
}
PORTABLE_KERNEL(second_kernel);

static void busy(double milliseconds)
{
    const auto end = std::chrono::steady_clock::now() + std::chrono::duration<double, std::milli>(milliseconds);
    while (std::chrono::steady_clock::now() < end)
        ;
}

template <typename Kernel> static void use(int device, double milliseconds, Kernel launch)
{
    int *data = nullptr;
    cudaStream_t stream;
    cudaSetDevice(device);
    cudaMalloc(reinterpret_cast<void **>(&data), sizeof *data);
    cudaStreamCreate(&stream);
    busy(milliseconds);
    launch(stream, data);
    cudaStreamSynchronize(stream);
}

int main(int, char **arguments)
{
    const double first = std::atof(arguments[1]), second = std::atof(arguments[2]);
    cudaSetDevice(1);
    cudaFree(nullptr);
    cudaSetDevice(0);
    cudaFree(nullptr);
    std::thread one([first] {
        use(0, first, [](cudaStream_t stream, int *data) { LAUNCH(first_kernel, dim3(1), dim3(1), 0, stream, data); });
    });
    std::thread between([second] {
        std::thread other([second] {
            use(1, second,
                [](cudaStream_t stream, int *data) { LAUNCH(second_kernel, dim3(1), dim3(1), 0, stream, data); });
        });
        other.join();
    });
    between.join();
    one.join();
    cudaDeviceSynchronize();
    return 0;
}
