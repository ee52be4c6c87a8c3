// Three workers take tasks from a counter, so that which worker does which task, and how many, is chance in every run.
// A task computes on its worker's stream, waits, downloads, waits again, and looks at its result; or nobody looks; or
// only every third task does.
// variants: each, nobody, some
#include "planted.h"

#include <atomic>
#include <thread>
#include <vector>

constexpr int count = 1024, workers = 3, tasks = 24;
constexpr size_t bytes = count * sizeof(int);

static std::atomic<int> next{0};

void program()
{
    cudaStream_t streams[workers];
    int *devices[workers], *hosts[workers];
    for (int worker = 0; worker < workers; ++worker) {
        streams[worker] = independent_stream();
        devices[worker] = device_integers(count);
        hosts[worker] = pinned_integers(count);
    }
    auto work = [&](int worker) {
        for (int task = next++; task < tasks; task = next++) {
            fill(devices[worker], count, task + 1, streams[worker]);
            WAIT(computed, cudaStreamSynchronize(streams[worker])); // sync: unnecessary
            DOWNLOAD_ASYNC(hosts[worker], devices[worker], bytes, streams[worker]);
            const bool looks = variant("each") || (variant("some") && task % 3 == 0);
            const auto left_out = [&] {
                return variant("some") && looks ? cudaStreamSynchronize(streams[worker]) : cudaSuccess;
            };
            // sync: each required, nobody unnecessary, some required and unnecessary
            WAIT_OR(ready, cudaStreamSynchronize(streams[worker]), left_out());
            if (looks)
                expect("sum", sum(hosts[worker], count), (task + 1) * count);
        }
    };
    std::vector<std::thread> threads;
    for (int worker = 0; worker < workers; ++worker)
        threads.emplace_back(work, worker);
    for (std::thread &thread : threads)
        thread.join();
}
