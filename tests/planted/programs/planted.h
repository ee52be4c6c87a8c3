/* What the planted programs share: variants, calls that can be left out, slow kernels, and checked output.
 *
 *     PROGRAM VARIANT [--without NAME[,NAME...]]
 *
 * A program is one function, `program()`. `variant("read")` tells which variant runs. Each call whose wait is judged
 * stands in WAIT(name, call), or in WAIT_OR(name, call, other) where leaving the wait out is another call and not none,
 * as in DOWNLOAD, UPLOAD and FREE; --without leaves such waits out. Output is a line for each `expect`, and the exit
 * status 1 when one does not hold.
 *
 * The label of a call is a comment at the end of its line; `labels.py` says how it is written.
 */
#ifndef PLANTED_H
#define PLANTED_H

#include <atomic>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include <cuda_runtime_api.h>
#include <sys/mman.h>
#include <unistd.h>

#include "portable_kernel.h"

/* Each program defines it. */
void program();

namespace planted
{

/* How the program was called. */
struct Arguments {
    std::string variant;
    std::set<std::string> without;
};

inline Arguments arguments;
inline bool failed = false;

inline void check(cudaError_t error)
{
    if (error == cudaSuccess)
        return;
    std::printf("CUDA error: %s\n", cudaGetErrorString(error));
    failed = true;
}

inline bool keeps(const char *name)
{
    return arguments.without.count(name) == 0;
}

/* Prints what came out, and remembers whether it was what should have. */
inline void expect(const char *what, long long found, long long expected)
{
    bool right = found == expected;
    std::printf("%s: %lld%s\n", what, found, right ? "" : " is wrong");
    failed = failed || !right;
}

/* Whether the labels are being proved: kernels take tens of milliseconds then, and nothing slows the program. */
inline bool proving()
{
    return std::getenv("PLANTED_PROVING") != nullptr;
}

/* Waits, without the GPU's help and only where waits were left out, until all work is surely over. A program calls it
 * to look at what work that nothing waited for has left behind. */
inline void settle()
{
    if (!arguments.without.empty())
        std::this_thread::sleep_for(std::chrono::milliseconds(200));
}

/* A shadow that the GPU fills, and that a host function of the stream delivers when the copy is over. */
struct Delivery {
    void *destination;
    void *shadow;
    size_t bytes;
};

inline void deliver(void *data)
{
    Delivery *delivery = static_cast<Delivery *>(data);
    std::memcpy(delivery->destination, delivery->shadow, delivery->bytes);
}

/* What cudaMemcpy from the device would be, did it not wait: also pageable memory gets the bytes when they come. */
inline cudaError_t download_later(void *destination, const void *source, size_t bytes, cudaStream_t stream = nullptr)
{
    Delivery *delivery = new Delivery{destination, nullptr, bytes};
    check(cudaMallocHost(&delivery->shadow, bytes));
    check(cudaMemcpyAsync(delivery->shadow, source, bytes, cudaMemcpyDeviceToHost, stream));
    return cudaLaunchHostFunc(stream, deliver, delivery);
}

} // namespace planted

#define WAIT(name, call) (planted::keeps(#name) ? planted::check(call) : void())
#define WAIT_OR(name, call, other) (planted::keeps(#name) ? planted::check(call) : planted::check(other))

/* The synchronous calls in which most programs wait, and what remains of them without their wait. */
#define DOWNLOAD(name, host, device, bytes)                                                                            \
    WAIT_OR(name, cudaMemcpy(host, device, bytes, cudaMemcpyDeviceToHost), download_later(host, device, bytes))
#define UPLOAD(name, device, host, bytes)                                                                              \
    WAIT_OR(name, cudaMemcpy(device, host, bytes, cudaMemcpyHostToDevice),                                             \
            cudaMemcpyAsync(device, host, bytes, cudaMemcpyHostToDevice))
#define FREE(name, pointer) WAIT(name, cudaFree(pointer))

/* Asynchronous copies, whose labels are about what they carry. */
#define DOWNLOAD_ASYNC(host, device, bytes, ...)                                                                       \
    check(cudaMemcpyAsync(host, device, bytes, cudaMemcpyDeviceToHost, ##__VA_ARGS__))
#define UPLOAD_ASYNC(device, host, bytes, ...)                                                                         \
    check(cudaMemcpyAsync(device, host, bytes, cudaMemcpyHostToDevice, ##__VA_ARGS__))

using planted::check;
using planted::download_later;
using planted::expect;
using planted::settle;

inline bool variant(const char *name)
{
    return planted::arguments.variant == name;
}

/* On the virtual GPU its duration comes from the configuration. */
__global__ void slow_fill(int *data, int count, int value)
{
#ifdef __CUDACC__
    for (long long end = clock64() + 40'000'000; clock64() < end;)
        continue;
#endif
    int index = blockIdx.x * blockDim.x + threadIdx.x;
    if (index < count)
        data[index] = value;
}
PORTABLE_KERNEL(slow_fill);

/* destination = source + 1, in a fourth of the time: begun together with a slow_fill it reads too early. */
__global__ void slow_add_one(int *destination, const int *source, int count)
{
#ifdef __CUDACC__
    for (long long end = clock64() + 10'000'000; clock64() < end;)
        continue;
#endif
    int index = blockIdx.x * blockDim.x + threadIdx.x;
    if (index < count)
        destination[index] = source[index] + 1;
}
PORTABLE_KERNEL(slow_add_one);

constexpr int threads_of_block = 256;

inline void fill(int *data, int count, int value, cudaStream_t stream = nullptr)
{
    LAUNCH(slow_fill, dim3((count + threads_of_block - 1) / threads_of_block), dim3(threads_of_block), 0, stream, data,
           count, value);
}

inline void add_slowly(int *destination, const int *source, int count, cudaStream_t stream = nullptr)
{
    LAUNCH(slow_add_one, dim3((count + threads_of_block - 1) / threads_of_block), dim3(threads_of_block), 0, stream,
           destination, source, count);
}

/* Memory for `count` integers; never freed, because freeing it waits. */
inline int *device_integers(int count)
{
    void *memory = nullptr;
    check(cudaMalloc(&memory, count * sizeof(int)));
    return static_cast<int *>(memory);
}

/* Page-locked, and filled. */
inline int *pinned_integers(int count, int value = 0)
{
    void *memory = nullptr;
    check(cudaMallocHost(&memory, count * sizeof(int)));
    int *integers = static_cast<int *>(memory);
    for (int index = 0; index < count; ++index)
        integers[index] = value;
    return integers;
}

/* Memory of the C library, filled. */
inline int *pageable_integers(int count, int value = 0)
{
    int *integers = static_cast<int *>(std::malloc(count * sizeof(int)));
    for (int index = 0; index < count; ++index)
        integers[index] = value;
    return integers;
}

/* A stream that the legacy default stream does not order. */
inline cudaStream_t independent_stream()
{
    cudaStream_t stream = nullptr;
    check(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
    return stream;
}

/* What `work` does on the stream, as a graph that can be launched. */
template <typename Work> cudaGraphExec_t captured(cudaStream_t stream, Work work)
{
    cudaGraph_t graph = nullptr;
    cudaGraphExec_t executable = nullptr;
    check(cudaStreamBeginCapture(stream, cudaStreamCaptureModeGlobal));
    work();
    check(cudaStreamEndCapture(stream, &graph));
    check(cudaGraphInstantiate(&executable, graph, 0));
    return executable;
}

inline long long sum(const int *integers, int count)
{
    long long result = 0;
    for (int index = 0; index < count; ++index)
        result += integers[index];
    return result;
}

int main(int count, char **words)
{
    if (count < 2) {
        std::fprintf(stderr, "usage: %s VARIANT [--without NAME[,NAME...]]\n", words[0]);
        return 2;
    }
    planted::arguments.variant = words[1];
    if (count == 4 && !std::strcmp(words[2], "--without")) {
        std::string names = words[3];
        for (char *name = std::strtok(&names[0], ","); name; name = std::strtok(nullptr, ","))
            planted::arguments.without.insert(name);
    }
    program();
    std::fflush(stdout);
    return planted::failed ? 1 : 0;
}

#endif
