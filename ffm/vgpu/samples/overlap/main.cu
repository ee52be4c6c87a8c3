/* overlap [FRAMES]: two threads with a stream each work on camera frames: one uploads and blurs a frame, and the other
 * adds up the rows of the frame before. Of their synchronizations one orders the streams, one fetches a result, and one
 * does nothing.
 *
 * Prints a checksum of all sums. Exit status: 0 when they are what the CPU computes, 1 when they are not, 2 for wrong
 * arguments or a failed CUDA call.
 */
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <thread>
#include <vector>

#include "arguments.h"
#include "check.h"
#include "checksum.h"
#include "exchange.h"
#include "frames.h"
#include "portable_kernel.h"
#include "variant.h"

constexpr int block_size = 128;
constexpr int slot_count = 3;
constexpr std::size_t frame_bytes = pixels * sizeof(std::int32_t);

/* One thread for each pixel. */
__global__ void blur(const std::int32_t *from, std::int32_t *to)
{
    const int pixel = blockIdx.x * blockDim.x + threadIdx.x;
    to[pixel] = blurred(from, pixel);
}
PORTABLE_KERNEL(blur);

/* One thread for each row. */
__global__ void sum_rows(const std::int32_t *frame, std::int32_t *sums)
{
    const int row = blockIdx.x * blockDim.x + threadIdx.x;
    std::int32_t sum = 0;
    for (int column = 0; column < side; ++column)
        sum += frame[row * side + column];
    sums[row] = sum;
}
PORTABLE_KERNEL(sum_rows);

/* A blurred frame on its way from one thread to the other. */
struct Slot {
    std::int32_t *blurred; /* on the device */
    std::vector<std::int32_t> expected;
    cudaEvent_t ready;
};

struct Pipeline {
    Slot slots[slot_count];
    Exchange free, full; /* numbers of slots */
};

/* The first thread: uploads and blurs all frames. */
static void blur_frames(Pipeline &pipeline, int frames)
{
    cudaStream_t stream;
    std::int32_t *source, *uploaded, *between;
    check(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
    check(cudaMallocHost((void **)&source, frame_bytes));
    check(cudaMalloc((void **)&uploaded, frame_bytes));
    check(cudaMalloc((void **)&between, frame_bytes));
    for (int number = 0; number < frames; ++number) {
        make_frame(number, source);
        const int taken = pipeline.free.take();
        Slot &slot = pipeline.slots[taken];
        check(cudaMemcpyAsync(uploaded, source, frame_bytes, cudaMemcpyHostToDevice, stream));
        if (waits_for_upload) {
            // problem: needless synchronization [overlap_fixed_wait]
            check(cudaStreamSynchronize(stream));
        }
        slot.expected = reference_sums(source);
        LAUNCH(blur, dim3(pixels / block_size), dim3(block_size), 0, stream, uploaded, slot.blurred);
        for (int pass = 1; pass < blur_passes; pass += 2) {
            LAUNCH(blur, dim3(pixels / block_size), dim3(block_size), 0, stream, slot.blurred, between);
            LAUNCH(blur, dim3(pixels / block_size), dim3(block_size), 0, stream, between, slot.blurred);
        }
        check(cudaGetLastError());
        if (orders_by_waiting) {
            // needed: orders streams [overlap_fixed_order]
            check(cudaStreamSynchronize(stream));
        } else {
            check(cudaEventRecord(slot.ready, stream));
        }
        pipeline.full.put(taken);
    }
    // once: teardown
    check(cudaStreamSynchronize(stream));
    // once: teardown
    check(cudaFree(uploaded));
    // once: teardown
    check(cudaFree(between));
    // once: teardown
    check(cudaFreeHost(source));
    check(cudaStreamDestroy(stream));
}

/* The second thread: adds up the rows of all frames; false when a sum is not as expected. */
static bool sum_frames(Pipeline &pipeline, int frames, std::uint64_t &hash)
{
    cudaStream_t stream;
    std::int32_t *sums, *result;
    bool good = true;
    check(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
    check(cudaMalloc((void **)&sums, side * sizeof(std::int32_t)));
    check(cudaMallocHost((void **)&result, side * sizeof(std::int32_t)));
    for (int number = 0; number < frames; ++number) {
        const int taken = pipeline.full.take();
        const Slot &slot = pipeline.slots[taken];
        if (!orders_by_waiting)
            check(cudaStreamWaitEvent(stream, slot.ready, 0));
        LAUNCH(sum_rows, dim3(1), dim3(side), 0, stream, slot.blurred, sums);
        check(cudaMemcpyAsync(result, sums, side * sizeof(std::int32_t), cudaMemcpyDeviceToHost, stream));
        // needed: result used at once
        check(cudaStreamSynchronize(stream));
        hash = checksum(result, side * sizeof(std::int32_t), hash);
        good = good && std::vector<std::int32_t>(result, result + side) == slot.expected;
        pipeline.free.put(taken);
    }
    // once: teardown
    check(cudaFree(sums));
    // once: teardown
    check(cudaFreeHost(result));
    check(cudaStreamDestroy(stream));
    return good;
}

int main(int count, char **arguments)
{
    const int frames = count_argument(count, arguments, "FRAMES", 1, 250);
    Pipeline pipeline;
    for (int number = 0; number < slot_count; ++number) {
        Slot &slot = pipeline.slots[number];
        check(cudaMalloc((void **)&slot.blurred, frame_bytes));
        check(cudaEventCreateWithFlags(&slot.ready, cudaEventDisableTiming));
        pipeline.free.put(number);
    }
    std::uint64_t hash = checksum(nullptr, 0);
    bool good = false;
    std::thread first(blur_frames, std::ref(pipeline), frames);
    std::thread second([&] { good = sum_frames(pipeline, frames, hash); });
    first.join();
    second.join();
    for (const Slot &slot : pipeline.slots) {
        check(cudaEventDestroy(slot.ready));
        // once: teardown
        check(cudaFree(slot.blurred));
    }
    std::printf("%d frames, checksum %016llx\n", frames, static_cast<unsigned long long>(hash));
    if (good)
        return 0;
    std::fprintf(stderr, "overlap: the sums differ from the reference\n");
    return 1;
}
