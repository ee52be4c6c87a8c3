/* watched KIND TURNS: what stages 3 and 4 could do too often, TURNS times. Prints a sum of what came back.
 *
 * ordered: launches on two streams, each with managed memory of its own, which an event orders; only the second stream
 * is waited for. again: asynchronous downloads to one pinned place, of which only the last one is read. polled: the
 * same, but the CPU waits for each and reads it. read: a launch, a download, and work of the CPU with the result, some
 * 0.1 ms in all. */
#include <cstdio>
#include <cstdlib>
#include <string>

#include "portable_kernel.h"
#include "runtime.h"

static constexpr std::size_t count = 1024;

__global__ void step(int *data)
{
    if (threadIdx.x == 0)
        data[0] += 1;
}
PORTABLE_KERNEL(step);

static void launch(cudaStream_t stream, int *data)
{
    LAUNCH(step, dim3(1), dim3(1), 0, stream, data);
}

static int ordered(int turns)
{
    int *first, *second;
    cudaStream_t before, after;
    cudaEvent_t done;
    check(cudaMallocManaged(reinterpret_cast<void **>(&first), count * sizeof(int), cudaMemAttachGlobal));
    check(cudaMallocManaged(reinterpret_cast<void **>(&second), count * sizeof(int), cudaMemAttachGlobal));
    first[0] = second[0] = 0;
    check(cudaStreamCreateWithFlags(&before, cudaStreamNonBlocking));
    check(cudaStreamCreateWithFlags(&after, cudaStreamNonBlocking));
    check(cudaEventCreateWithFlags(&done, cudaEventDisableTiming));
    for (int turn = 0; turn < turns; ++turn) {
        launch(before, first);
        check(cudaEventRecord(done, before));
        check(cudaStreamWaitEvent(after, done, 0));
        launch(after, second);
        check(cudaStreamSynchronize(after));
    }
    return first[0] + second[0];
}

static int downloads(int turns, bool reads)
{
    int *device, *pinned, sum = 0;
    check(cudaMalloc(reinterpret_cast<void **>(&device), count * sizeof(int)));
    check(cudaMemset(device, 0, count * sizeof(int)));
    check(cudaMallocHost(reinterpret_cast<void **>(&pinned), count * sizeof(int)));
    for (int turn = 0; turn < turns; ++turn) {
        check(cudaMemcpyAsync(pinned, device, count * sizeof(int), cudaMemcpyDeviceToHost, nullptr));
        if (reads) {
            check(cudaStreamSynchronize(nullptr));
            sum += pinned[0];
        }
    }
    check(cudaStreamSynchronize(nullptr));
    return sum + pinned[0];
}

/* Reads no clock: a wait before that would count as one for timing. */
static void work()
{
    volatile int left = 40000;
    while (left > 0)
        left = left - 1;
}

static int read_results(int turns)
{
    int *device, sum = 0;
    check(cudaMalloc(reinterpret_cast<void **>(&device), count * sizeof(int)));
    check(cudaMemset(device, 0, count * sizeof(int)));
    int *results = new int[count];
    for (int turn = 0; turn < turns; ++turn) {
        launch(nullptr, device);
        check(cudaMemcpy(results, device, count * sizeof(int), cudaMemcpyDeviceToHost));
        sum += results[0];
        work();
    }
    delete[] results;
    return sum;
}

static int run(const std::string &kind, int turns)
{
    if (kind == "ordered")
        return ordered(turns);
    return kind == "read" ? read_results(turns) : downloads(turns, kind == "polled");
}

int main(int words, char **word)
{
    if (words != 3) {
        std::fprintf(stderr, "usage: watched ordered|again|polled|read TURNS\n");
        return 1;
    }
    std::printf("%d\n", run(word[1], std::atoi(word[2])));
    return 0;
}
