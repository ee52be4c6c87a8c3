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

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include <cuda_runtime_api.h>
#include <sys/mman.h>
#include <unistd.h>

#include "portable_kernel.h"

/* Each program defines it. */
void program();

namespace planted
{

/* The variant that runs, as the command line names it. */
const char *variant();

/* Whether a wait stays: its name is not among those of --without. */
bool keeps(const char *name);

/* Whether all waits stay. */
bool complete();

void check(cudaError_t error);

/* Prints what came out, and remembers whether it was what should have. */
void expect(const char *what, long long found, long long expected);

/* Whether something was not as expected, or a call failed. */
bool failed();

/* Whether the labels are being proved: kernels take tens of milliseconds then, and nothing slows the program. */
bool proving();

/* Waits, without the GPU's help and only where waits were left out, until all work is surely over. A program calls it
 * to look at what work that nothing waited for has left behind. */
void settle();

/* What cudaMemcpy from the device would be, did it not wait: also pageable memory gets the bytes when they come. */
cudaError_t download_later(void *destination, const void *source, size_t bytes, cudaStream_t stream = nullptr);

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
    return std::strcmp(planted::variant(), name) == 0;
}

/* Fills `count` integers. On the virtual GPU its duration comes from the configuration. */
void fill(int *data, int count, int value, cudaStream_t stream = nullptr);

/* destination = source + 1, in a fourth of the time of `fill`: begun together with one it reads too early. */
void add_slowly(int *destination, const int *source, int count, cudaStream_t stream = nullptr);

constexpr int threads_of_block = 256;

/* The kernel of `fill`, with its parameters, in blocks of `threads_of_block`. */
extern const void *const fill_kernel;

/* Memory for `count` integers; never freed, because freeing it waits. */
inline int *device_integers(int count)
{
    void *memory = nullptr;
    check(cudaMalloc(&memory, count * sizeof(int)));
    return static_cast<int *>(memory);
}

/* Page-locked memory for `count` integers, behind as many zeros; both on pages of their own if they fill pages. */
inline int *behind_zeros(int count)
{
    const size_t bytes = 2 * count * sizeof(int);
    void *memory = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    check(cudaHostRegister(memory, bytes, 0));
    return static_cast<int *>(memory) + count;
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

#endif
