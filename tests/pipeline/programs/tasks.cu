// Workers of a pool take tasks of two kinds; how many each one takes is drawn anew in every run. Of 60 tasks that
// download, 20 look at what they downloaded.

#include <cuda_runtime.h>
#include <unistd.h>

#include <atomic>
#include <cstdio>
#include <random>
#include <thread>
#include <vector>

namespace
{

const int WORKERS = 4, TASKS = 80;
const size_t BYTES = 1 << 16;

struct Worker {
    cudaStream_t stream;
    unsigned char *device, *host;
    std::vector<int> tasks;
    std::thread thread;
};

std::atomic<long> sum{0};

__attribute__((noinline)) void clear(Worker &worker)
{
    cudaMemsetAsync(worker.device, 0, BYTES, worker.stream);
    cudaStreamSynchronize(worker.stream); /* cleared */
}

__attribute__((noinline)) void download(Worker &worker, int task)
{
    cudaMemsetAsync(worker.device, task, BYTES, worker.stream);
    cudaMemcpyAsync(worker.host, worker.device, BYTES, cudaMemcpyDeviceToHost, worker.stream);
    cudaStreamSynchronize(worker.stream); /* downloaded */
    if (task % 4 == 1)
        sum += worker.host[BYTES / 2];
}

} // namespace

int main()
{
    Worker workers[WORKERS];
    std::mt19937 draw(getpid());
    for (Worker &worker : workers) {
        cudaStreamCreateWithFlags(&worker.stream, cudaStreamNonBlocking);
        cudaMalloc(reinterpret_cast<void **>(&worker.device), BYTES);
        cudaMallocHost(reinterpret_cast<void **>(&worker.host), BYTES);
    }
    for (int task = 0; task < TASKS; task++)
        workers[draw() % WORKERS].tasks.push_back(task);
    for (Worker &worker : workers)
        worker.thread = std::thread([&worker] {
            for (int task : worker.tasks)
                task % 4 == 0 ? clear(worker) : download(worker, task);
        });
    for (Worker &worker : workers)
        worker.thread.join();
    std::printf("%ld\n", sum.load());
    return 0;
}
