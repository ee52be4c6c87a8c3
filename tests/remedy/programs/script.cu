/* script FILE: performs the operations that a file lists, one on each line, and prints what the CPU came to see.
 *
 * A line is a thread (0 is main; others run the operation while main waits), an operation and whole numbers. Every
 * operation has a call site of its own in `perform`. Streams: 0 legacy, 1 the thread's own, 2 and 3 blocking, 4 and 5
 * non-blocking.
 */
#include <array>
#include <condition_variable>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <mutex>
#include <sstream>
#include <string>
#include <thread>
#include <vector>

#include "portable_kernel.h"

static void require(cudaError_t error, const char *what)
{
    if (error == cudaSuccess)
        return;
    std::printf("%s: %s\n", what, cudaGetErrorName(error));
    std::exit(1);
}
#define REQUIRE(call) require(call, #call)

__global__ void mix(uint32_t *to, const uint32_t *from, uint32_t factor, int n)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n)
        to[i] = to[i] * 31 + from[i] * factor + i;
}
PORTABLE_KERNEL(mix);

__global__ void mix_slowly(uint32_t *to, const uint32_t *from, uint32_t factor, int n)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n)
        to[i] = to[i] * 31 + from[i] * factor + i;
}
PORTABLE_KERNEL(mix_slowly);

namespace
{

constexpr int largest = 8192;

/* So much that the C library maps it. */
constexpr std::size_t pages_of_its_own = 1 << 20;

uint32_t *device[8];
int sizes[8];
uint32_t *host[8]; /* 0 to 3 pinned, 4 to 7 pageable, 6 and 7 on pages of their own */
cudaStream_t streams[6];
cudaEvent_t events[4];
std::size_t free_at_start;

uint32_t *pageable(int number)
{
    void *memory = std::malloc(number < 6 ? largest * sizeof(uint32_t) : pages_of_its_own);
    std::memset(memory, number, largest * sizeof(uint32_t));
    return static_cast<uint32_t *>(memory);
}

uint32_t hash(const uint32_t *values, int n)
{
    uint32_t result = 2166136261u;
    for (int i = 0; i < n; ++i)
        result = (result ^ values[i]) * 16777619u;
    return result;
}

void add_to_host(void *array)
{
    uint32_t *values = static_cast<uint32_t *>(array);
    for (int i = 0; i < 16; ++i)
        values[i] += 7;
}

void perform(const std::string &operation, int a, int b, int c, int d)
{
    const std::size_t bytes = sizeof(uint32_t) * static_cast<std::size_t>(sizes[a & 7]);
    if (operation == "allocate") {
        sizes[a] = b;
        REQUIRE(cudaMalloc(reinterpret_cast<void **>(&device[a]), sizeof(uint32_t) * static_cast<std::size_t>(b)));
    } else if (operation == "allocate_ordered") {
        sizes[a] = b;
        REQUIRE(cudaMallocAsync(reinterpret_cast<void **>(&device[a]), sizeof(uint32_t) * static_cast<std::size_t>(b),
                                streams[d]));
    } else if (operation == "free_ordered") {
        REQUIRE(cudaFreeAsync(device[a], streams[d]));
    } else if (operation == "free") {
        REQUIRE(cudaFree(device[a]));
    } else if (operation == "mix") {
        LAUNCH(mix, dim3((c + 127) / 128), dim3(128), 0, streams[d], device[a], device[b], 3u, c);
    } else if (operation == "mix_slowly") {
        LAUNCH(mix_slowly, dim3((c + 127) / 128), dim3(128), 0, streams[d], device[a], device[b], 5u, c);
    } else if (operation == "mix_host") { /* host memory by its own address, as unified addressing allows */
        LAUNCH(mix_slowly, dim3((c + 127) / 128), dim3(128), 0, streams[d], host[a], device[b], 9u, c);
    } else if (operation == "set") {
        REQUIRE(cudaMemset(device[a], b, bytes));
    } else if (operation == "set_async") {
        REQUIRE(cudaMemsetAsync(device[a], b, bytes, streams[d]));
    } else if (operation == "upload") {
        REQUIRE(cudaMemcpy(device[a], host[b], bytes, cudaMemcpyHostToDevice));
    } else if (operation == "upload_again") {
        REQUIRE(cudaMemcpy(device[a], host[b], bytes, cudaMemcpyHostToDevice));
    } else if (operation == "upload_async") {
        REQUIRE(cudaMemcpyAsync(device[a], host[b], bytes, cudaMemcpyHostToDevice, streams[d]));
    } else if (operation == "download") {
        REQUIRE(cudaMemcpy(host[b] + c, device[a], bytes, cudaMemcpyDeviceToHost));
    } else if (operation == "download_async") {
        REQUIRE(cudaMemcpyAsync(host[b], device[a], bytes, cudaMemcpyDeviceToHost, streams[d]));
    } else if (operation == "copy") {
        REQUIRE(cudaMemcpyAsync(device[a], device[b], sizeof(uint32_t) * static_cast<std::size_t>(c),
                                cudaMemcpyDeviceToDevice, streams[d]));
    } else if (operation == "synchronize") {
        REQUIRE(cudaDeviceSynchronize());
    } else if (operation == "synchronize_stream") {
        REQUIRE(cudaStreamSynchronize(streams[d]));
    } else if (operation == "record") {
        REQUIRE(cudaEventRecord(events[a], streams[d]));
    } else if (operation == "synchronize_event") {
        REQUIRE(cudaEventSynchronize(events[a]));
    } else if (operation == "wait_event") {
        REQUIRE(cudaStreamWaitEvent(streams[d], events[a], 0));
    } else if (operation == "query") {
        std::printf("query %s\n", cudaGetErrorName(cudaStreamQuery(streams[d])));
    } else if (operation == "call_host") {
        REQUIRE(cudaLaunchHostFunc(streams[d], add_to_host, host[b]));
    } else if (operation == "write") {
        for (int i = 0; i < largest; ++i)
            host[b][i] = static_cast<uint32_t>(i * c);
    } else if (operation == "renew") {
        std::free(host[b]);
        host[b] = pageable(b);
    } else if (operation == "read") {
        std::printf("host %d: %08x\n", b, hash(host[b], c));
    } else if (operation == "memory") {
        std::size_t now, total;
        REQUIRE(cudaMemGetInfo(&now, &total));
        std::printf("memory in use: %zu\n", free_at_start - now);
    } else {
        std::printf("no operation %s\n", operation.c_str());
        std::exit(1);
    }
}

/* Performs operations one at a time, while the thread that asks waits. */
class Worker
{
  public:
    Worker() : thread_([this] { serve(); }) {}
    ~Worker()
    {
        ask("");
        thread_.join();
    }
    Worker(const Worker &) = delete;
    Worker &operator=(const Worker &) = delete;

    void ask(const std::string &operation, int a = 0, int b = 0, int c = 0, int d = 0)
    {
        std::unique_lock<std::mutex> lock(mutex_);
        operation_ = operation;
        numbers_ = {a, b, c, d};
        asked_ = true;
        changed_.notify_all();
        changed_.wait(lock, [this] { return !asked_; });
    }

  private:
    void serve()
    {
        std::unique_lock<std::mutex> lock(mutex_);
        while (true) {
            changed_.wait(lock, [this] { return asked_; });
            if (!operation_.empty())
                perform(operation_, numbers_[0], numbers_[1], numbers_[2], numbers_[3]);
            asked_ = false;
            changed_.notify_all();
            if (operation_.empty())
                return;
        }
    }

    std::mutex mutex_;
    std::condition_variable changed_;
    std::string operation_;
    std::array<int, 4> numbers_{};
    bool asked_ = false;
    std::thread thread_;
};

} // namespace

int main(int count, char **arguments)
{
    if (count != 2)
        return 2;
    for (int i = 0; i < 8; ++i) {
        if (i < 4) {
            REQUIRE(cudaMallocHost(reinterpret_cast<void **>(&host[i]), largest * sizeof(uint32_t)));
            std::memset(host[i], i, largest * sizeof(uint32_t));
        } else {
            host[i] = pageable(i);
        }
    }
    streams[1] = cudaStreamPerThread;
    for (int i = 2; i < 6; ++i)
        REQUIRE(cudaStreamCreateWithFlags(&streams[i], i < 4 ? cudaStreamDefault : cudaStreamNonBlocking));
    for (cudaEvent_t &event : events)
        REQUIRE(cudaEventCreate(&event));
    std::size_t total;
    REQUIRE(cudaMemGetInfo(&free_at_start, &total));

    Worker workers[2];
    std::ifstream script(arguments[1]);
    for (std::string line; std::getline(script, line);) {
        std::istringstream words(line);
        int thread, a = 0, b = 0, c = 0, d = 0;
        std::string operation;
        words >> thread >> operation >> a >> b >> c >> d;
        if (thread == 0)
            perform(operation, a, b, c, d);
        else
            workers[thread - 1].ask(operation, a, b, c, d);
    }
    REQUIRE(cudaDeviceSynchronize());
    for (int i = 0; i < 8; ++i)
        std::printf("host %d at the end: %08x\n", i, hash(host[i], largest));
    return 0;
}
