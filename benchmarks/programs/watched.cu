/* watched KIND TURNS: what stages 3 and 4 could do too often, TURNS times. Prints a sum of what came back.
 *
 * ordered: launches on two streams, each with managed memory of its own, which an event orders; only the second stream
 * is waited for. again: asynchronous downloads to one pinned place, of which only the last one is read. polled: the
 * same, but the CPU waits for each and reads it. read: a launch, a download, and work of the CPU with the result, some
 * 0.1 ms in all. several: a launch and ten downloads to arrays of the heap, all of which are read after the last one.
 * unread: a launch and a download to one array of the heap, of which only the last one is read. written: the CPU writes
 * pinned memory, and uploads it, and waits. block: a launch on 64 MiB of managed memory, of which the CPU then reads a
 * word in each MiB. kept: a launch and a download to a small new array of the heap, and work of the CPU with small
 * arrays that lie between these, a few of which it uses more than all others; all downloads are read at the end. */
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <vector>

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

static int unread(int turns)
{
    int *device;
    check(cudaMalloc(reinterpret_cast<void **>(&device), count * sizeof(int)));
    check(cudaMemset(device, 0, count * sizeof(int)));
    std::vector<int> result(count);
    for (int turn = 0; turn < turns; ++turn) {
        launch(nullptr, device);
        check(cudaMemcpy(result.data(), device, count * sizeof(int), cudaMemcpyDeviceToHost));
    }
    return result[0];
}

static int several(int turns)
{
    constexpr std::size_t length = 600;
    int *device, sum = 0;
    check(cudaMalloc(reinterpret_cast<void **>(&device), length * sizeof(int)));
    check(cudaMemset(device, 0, length * sizeof(int)));
    std::vector<std::vector<int>> arrays(10, std::vector<int>(length));
    for (int turn = 0; turn < turns; ++turn) {
        launch(nullptr, device);
        for (std::vector<int> &array : arrays)
            check(cudaMemcpy(array.data(), device, length * sizeof(int), cudaMemcpyDeviceToHost));
        for (const std::vector<int> &array : arrays)
            sum += array[0];
    }
    return sum;
}

static int written(int turns)
{
    int *device, *pinned;
    check(cudaMalloc(reinterpret_cast<void **>(&device), count * sizeof(int)));
    check(cudaMallocHost(reinterpret_cast<void **>(&pinned), count * sizeof(int)));
    for (int turn = 0; turn < turns; ++turn) {
        for (std::size_t place = 0; place < count; ++place)
            pinned[place] = turn;
        check(cudaMemcpyAsync(device, pinned, count * sizeof(int), cudaMemcpyHostToDevice, nullptr));
        launch(nullptr, device);
        check(cudaStreamSynchronize(nullptr));
    }
    return pinned[0];
}

static int kept(int turns)
{
    constexpr std::size_t length = 4, beside = 64, used = 100;
    int *device, sum = 0;
    check(cudaMalloc(reinterpret_cast<void **>(&device), length * sizeof(int)));
    check(cudaMemset(device, 0, length * sizeof(int)));
    std::vector<std::vector<int>> results, others;
    for (int turn = 0; turn < turns; ++turn) {
        launch(nullptr, device);
        results.emplace_back(length);
        others.emplace_back(beside);
        check(cudaMemcpy(results.back().data(), device, length * sizeof(int), cudaMemcpyDeviceToHost));
        for (std::size_t place = 0; place < used; ++place) {
            const std::size_t any = (place * 7919 + static_cast<std::size_t>(turn) * 104729) % others.size();
            ++others[place % 4 == 0 ? any : any % 16][place % beside];
        }
        work();
    }
    for (const std::vector<int> &result : results)
        sum += result[0];
    return sum;
}

static int block(int turns)
{
    constexpr std::size_t words = (64 << 20) / sizeof(int), distance = (1 << 20) / sizeof(int);
    int *managed, sum = 0;
    check(cudaMallocManaged(reinterpret_cast<void **>(&managed), words * sizeof(int), cudaMemAttachGlobal));
    std::memset(managed, 0, words * sizeof(int));
    for (int turn = 0; turn < turns; ++turn) {
        launch(nullptr, managed);
        check(cudaDeviceSynchronize());
        for (std::size_t place = 0; place < words; place += distance)
            sum += managed[place];
    }
    return sum;
}

static int run(const std::string &kind, int turns)
{
    if (kind == "ordered")
        return ordered(turns);
    if (kind == "unread")
        return unread(turns);
    if (kind == "several")
        return several(turns);
    if (kind == "written")
        return written(turns);
    if (kind == "block")
        return block(turns);
    if (kind == "kept")
        return kept(turns);
    return kind == "read" ? read_results(turns) : downloads(turns, kind == "polled");
}

int main(int words, char **word)
{
    if (words != 3) {
        std::fprintf(stderr, "usage: watched ordered|again|polled|read|unread|several|written|block|kept TURNS\n");
        return 1;
    }
    std::printf("%d\n", run(word[1], std::atoi(word[2])));
    return 0;
}
