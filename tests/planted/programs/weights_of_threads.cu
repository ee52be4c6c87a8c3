// Threads with streams and memory of their own share the weights that their kernels multiply with: they only read them;
// one of the threads writes them, too; or a kernel finds them by an address in memory, and could write what it finds.
// variants: read, written, found
#include "planted.h"

#include <atomic>
#include <cuda.h>
#include <thread>

constexpr int count = 1024, steps = 3, workers = 2;
constexpr size_t bytes = count * sizeof(int);

/* sums += weights; weights = value; sums += *found */
static const char code[] = R"(
.version 8.0
.target sm_90
.address_size 64

.visible .entry weigh(.param .u64 weigh_weights, .param .u64 weigh_sums)
{
    .reg .b32 %r<6>;
    .reg .b64 %rd<8>;
    ld.param.u64 %rd1, [weigh_weights];
    ld.param.u64 %rd2, [weigh_sums];
    mov.u32 %r1, %tid.x;
    mul.wide.u32 %rd3, %r1, 4;
    add.s64 %rd4, %rd1, %rd3;
    add.s64 %rd5, %rd2, %rd3;
    ld.global.u32 %r2, [%rd4];
    ld.global.u32 %r3, [%rd5];
    add.s32 %r4, %r2, %r3;
    st.global.u32 [%rd5], %r4;
    ret;
}

.visible .entry learn(.param .u64 learn_weights, .param .u32 learn_value)
{
    .reg .b32 %r<3>;
    .reg .b64 %rd<4>;
    ld.param.u64 %rd1, [learn_weights];
    ld.param.u32 %r2, [learn_value];
    mov.u32 %r1, %tid.x;
    mul.wide.u32 %rd2, %r1, 4;
    add.s64 %rd3, %rd1, %rd2;
    st.global.u32 [%rd3], %r2;
    ret;
}

.visible .entry find(.param .u64 find_found, .param .u64 find_sums)
{
    .reg .b32 %r<6>;
    .reg .b64 %rd<8>;
    ld.param.u64 %rd7, [find_found];
    ld.global.u64 %rd1, [%rd7];
    ld.param.u64 %rd2, [find_sums];
    mov.u32 %r1, %tid.x;
    mul.wide.u32 %rd3, %r1, 4;
    add.s64 %rd4, %rd1, %rd3;
    add.s64 %rd5, %rd2, %rd3;
    ld.global.u32 %r2, [%rd4];
    ld.global.u32 %r3, [%rd5];
    add.s32 %r4, %r2, %r3;
    st.global.u32 [%rd5], %r4;
    ret;
}
)";

static CUmodule module;

template <typename... Given> static void launch(const char *name, cudaStream_t stream, Given... given)
{
    CUfunction function;
    void *parameters[] = {&given...};
    check(static_cast<cudaError_t>(cuModuleGetFunction(&function, module, name)));
    check(static_cast<cudaError_t>(cuLaunchKernel(function, 1, 1, 1, count, 1, 1, 0, stream, parameters, nullptr)));
}

static std::atomic<int> working{workers};

static void step(cudaStream_t stream, int *weights, int **found, int *sums)
{
    if (variant("found"))
        launch("find", stream, found, sums);
    else
        launch("weigh", stream, weights, sums);
}

static void work(int number, int *weights, int **found, int *result)
{
    check(cudaSetDevice(0));
    cudaStream_t stream = independent_stream();
    int *sums = device_integers(count), *host = pinned_integers(count);
    check(cudaMemsetAsync(sums, number, bytes, stream));
    for (int made = 0; made < steps; ++made) {
        step(stream, weights, found, sums);
        // sync: read unnecessary, written, found required (undecidable)
        WAIT(of_step, cudaStreamSynchronize(stream));
    }
    for (--working; working > 0;)
        std::this_thread::yield();
    if (variant("written") && number == 0)
        launch("learn", stream, weights, 1);
    step(stream, weights, found, sums);
    DOWNLOAD_ASYNC(host, sums, bytes, stream);
    WAIT(of_end, cudaStreamSynchronize(stream)); // sync: required
    *result = sum(host, count) - number * 0x01010101LL * count;
}

void program()
{
    int *weights = device_integers(count), **found = nullptr, **address = nullptr, results[workers];
    check(static_cast<cudaError_t>(cuModuleLoadData(&module, code))); // sync: unnecessary
    check(cudaMalloc(reinterpret_cast<void **>(&found), sizeof *found));
    check(cudaMallocHost(reinterpret_cast<void **>(&address), sizeof *address));
    *address = weights;
    fill(weights, count, 1);
    UPLOAD_ASYNC(found, address, sizeof *address);
    WAIT(ready, cudaStreamSynchronize(nullptr)); // sync: required
    std::thread threads[workers];
    for (int number = 0; number < workers; ++number)
        threads[number] = std::thread(work, number, weights, found, &results[number]);
    for (std::thread &thread : threads)
        thread.join();
    for (int result : results)
        expect("sum", result, (steps + 1) * count);
}
