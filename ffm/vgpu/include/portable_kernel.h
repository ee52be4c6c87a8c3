/* One CUDA source for a real and for the virtual GPU.
 *
 *     #include "portable_kernel.h"
 *
 *     __global__ void scale(float *x, float a, int n) {
 *         int i = blockIdx.x * blockDim.x + threadIdx.x;
 *         if (i < n) x[i] *= a;
 *     }
 *     PORTABLE_KERNEL(scale);
 *
 *     LAUNCH(scale, dim3(grid), dim3(block), shared_bytes, stream, x, 2.0f, n);
 *
 * With nvcc PORTABLE_KERNEL is empty and LAUNCH is `<<<>>>`. With g++ (`-x c++`) PORTABLE_KERNEL registers
 * the kernel with libcudart when the program starts, and LAUNCH calls cudaLaunchKernel; the virtual GPU then
 * calls the function once for each thread of the grid, one after the other. So a portable kernel uses neither
 * __syncthreads nor __shared__ nor warp functions, and no thread of a grid may wait for another.
 */
#ifndef PORTABLE_KERNEL_H
#define PORTABLE_KERNEL_H

#include <cuda_runtime_api.h>

#ifdef __CUDACC__

#include <cuda_runtime.h>
#define PORTABLE_KERNEL(...) static_assert(true, "")
#define LAUNCH(kernel, grid, block, shared_bytes, stream, ...)                                                         \
    kernel<<<(grid), (block), (shared_bytes), (stream)>>>(__VA_ARGS__)

#else

#include <array>
#include <cstddef>
#include <utility>
#include <vector_types.h>

#include "kernel_image.h"

/* The position of the thread that the GPU runs; one copy for each linked program or library. */
__attribute__((visibility("hidden"))) inline thread_local uint3 threadIdx = {0, 0, 0};
__attribute__((visibility("hidden"))) inline thread_local uint3 blockIdx = {0, 0, 0};
__attribute__((visibility("hidden"))) inline thread_local dim3 blockDim(1, 1, 1);
__attribute__((visibility("hidden"))) inline thread_local dim3 gridDim(1, 1, 1);

/* What nvcc's generated host code calls, with the prototypes that NVIDIA's libcudart exports. */
extern "C" {
void **__cudaRegisterFatBinary(void *image);
void __cudaRegisterFatBinaryEnd(void **handle);
void __cudaUnregisterFatBinary(void **handle);
void __cudaRegisterFunction(void **handle, const char *host_function, char *device_function, const char *device_name,
                            int thread_limit, uint3 *thread_id, uint3 *block_id, dim3 *block_dim, dim3 *grid_dim,
                            int *warp_size);
}

namespace portable_kernel
{

template <typename Type> struct Identity {
    using type = Type;
};

template <typename... Parameters, std::size_t... Index>
__attribute__((always_inline)) inline void call(void (*kernel)(Parameters...), void *const *arguments,
                                                std::index_sequence<Index...>)
{
    (void)arguments;
    kernel(*static_cast<Parameters *>(arguments[Index])...);
}

/* Calls `kernel` for every thread of the grid, x fastest, then y, z, then the blocks in the same order. */
template <auto kernel, typename... Parameters>
void run_grid(const uint32_t grid[3], const uint32_t block[3], void *const *arguments)
{
    gridDim = dim3(grid[0], grid[1], grid[2]);
    blockDim = dim3(block[0], block[1], block[2]);
    for (uint32_t block_z = 0; block_z < grid[2]; ++block_z)
        for (uint32_t block_y = 0; block_y < grid[1]; ++block_y)
            for (uint32_t block_x = 0; block_x < grid[0]; ++block_x) {
                blockIdx = {block_x, block_y, block_z};
                for (uint32_t thread_z = 0; thread_z < block[2]; ++thread_z)
                    for (uint32_t thread_y = 0; thread_y < block[1]; ++thread_y)
                        for (uint32_t thread_x = 0; thread_x < block[0]; ++thread_x) {
                            threadIdx = {thread_x, thread_y, thread_z};
                            call<Parameters...>(kernel, arguments, std::index_sequence_for<Parameters...>{});
                        }
            }
}

/* Parameters as nvcc lays them out: each at the next multiple of its alignment. A last element ends the array, so that
 * there is one for a kernel without parameters too. */
template <typename... Parameters> constexpr std::array<KernelParameter, sizeof...(Parameters) + 1> layout()
{
    constexpr uint32_t alignments[] = {alignof(Parameters)..., 1};
    std::array<KernelParameter, sizeof...(Parameters) + 1> parameters = {
        {{0, static_cast<uint32_t>(sizeof(Parameters))}..., {0, 0}}};
    uint32_t end = 0;
    for (std::size_t index = 0; index < parameters.size(); ++index) {
        parameters[index].offset = (end + alignments[index] - 1) / alignments[index] * alignments[index];
        end = parameters[index].offset + parameters[index].size;
    }
    return parameters;
}

/* The image of this linked program or library. */
__attribute__((visibility("hidden"))) inline KernelImage image = {KERNEL_IMAGE_HEADER, KERNEL_IMAGE_MAGIC,
                                                                  KERNEL_IMAGE_VERSION, nullptr};
__attribute__((visibility("hidden"))) inline KernelWrapper wrapper = {KERNEL_WRAPPER_MAGIC, KERNEL_WRAPPER_VERSION,
                                                                      &image, nullptr};

/* The image's registration with libcudart, which ends with the program. */
class ImageRegistration
{
  public:
    ImageRegistration() : handle_(__cudaRegisterFatBinary(&wrapper))
    {
        __cudaRegisterFatBinaryEnd(handle_);
    }
    ~ImageRegistration()
    {
        __cudaUnregisterFatBinary(handle_);
    }
    ImageRegistration(const ImageRegistration &) = delete;
    ImageRegistration &operator=(const ImageRegistration &) = delete;
    void **handle() const
    {
        return handle_;
    }

  private:
    void **handle_;
};

__attribute__((visibility("hidden"))) inline ImageRegistration &registration()
{
    static ImageRegistration instance;
    return instance;
}

/* Adds one kernel to the image while the program's constructors run. */
template <auto kernel> class KernelRegistration
{
  public:
    explicit KernelRegistration(const char *name)
    {
        add(name, kernel);
    }

  private:
    template <typename... Parameters> void add(const char *name, void (*host_function)(Parameters...))
    {
        static constexpr auto parameters = layout<Parameters...>();
        static KernelEntry entry = {name, &run_grid<kernel, Parameters...>, parameters.data(), sizeof...(Parameters),
                                    image.first};
        image.first = &entry;
        __cudaRegisterFunction(registration().handle(), reinterpret_cast<const char *>(host_function),
                               const_cast<char *>(name), name, -1, nullptr, nullptr, nullptr, nullptr, nullptr);
    }
};

/* Arguments are converted to the kernel's parameter types, as `<<<>>>` does. Errors: as cudaLaunchKernel. */
template <typename... Parameters>
__attribute__((always_inline)) inline cudaError_t launch(void (*kernel)(Parameters...), dim3 grid, dim3 block,
                                                         std::size_t shared_bytes, cudaStream_t stream,
                                                         typename Identity<Parameters>::type... arguments)
{
    void *pointers[] = {const_cast<void *>(static_cast<const volatile void *>(&arguments))..., nullptr};
    return cudaLaunchKernel(reinterpret_cast<const void *>(kernel), grid, block, pointers, shared_bytes, stream);
}

} // namespace portable_kernel

#define PORTABLE_KERNEL_JOIN(left, right) left##right
#define PORTABLE_KERNEL_NAME(counter) PORTABLE_KERNEL_JOIN(portable_kernel_registration_, counter)

/* At namespace scope, after the kernel's definition; a template instance is written with its arguments. */
#define PORTABLE_KERNEL(...)                                                                                           \
    static const portable_kernel::KernelRegistration<&__VA_ARGS__> PORTABLE_KERNEL_NAME(__COUNTER__)                   \
    {                                                                                                                  \
        #__VA_ARGS__                                                                                                   \
    }

/* As with `<<<>>>`, cudaGetLastError tells whether the launch was accepted. */
#define LAUNCH(kernel, grid, block, shared_bytes, stream, ...)                                                         \
    static_cast<void>(portable_kernel::launch(kernel, (grid), (block), (shared_bytes), (stream), ##__VA_ARGS__))

/* Kernels of two streams may run at the same time, so these are atomic here too. */
template <typename Type> inline Type portable_atomic_add(Type *address, Type value)
{
    Type old;
    __atomic_load(address, &old, __ATOMIC_RELAXED);
    Type sum = old + value;
    while (!__atomic_compare_exchange(address, &old, &sum, true, __ATOMIC_RELAXED, __ATOMIC_RELAXED))
        sum = old + value;
    return old;
}
inline int atomicAdd(int *address, int value)
{
    return portable_atomic_add(address, value);
}
inline unsigned atomicAdd(unsigned *address, unsigned value)
{
    return portable_atomic_add(address, value);
}
inline unsigned long long atomicAdd(unsigned long long *address, unsigned long long value)
{
    return portable_atomic_add(address, value);
}
inline float atomicAdd(float *address, float value)
{
    return portable_atomic_add(address, value);
}
inline double atomicAdd(double *address, double value)
{
    return portable_atomic_add(address, value);
}

#endif
#endif
