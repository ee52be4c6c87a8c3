/* Runs a script of steps (`tests/planted/scripts.py`): a line is a thread, what it does, and on what. The threads hand
 * over to each other in the order of the lines; the file's name stands where other programs have their variant. */
#include "planted.h"

#include <atomic>
#include <fstream>
#include <sstream>
#include <string>
#include <thread>
#include <vector>

namespace
{

constexpr int count = 4096;
constexpr size_t bytes = count * sizeof(int);
/* Without memory protection keys, the watch steps over each access of a thread that others may follow, of which it
 * allows some thousand: each page is accessed often enough, and no more. */
constexpr int stride = 64;
constexpr int streams_count = 4, buffers_count = 3, events_count = 2, threads_count = 3;

struct Step {
    int thread;
    std::string operation;
    int first, second;
};

std::vector<Step> steps;
std::atomic<size_t> turn{0};
std::atomic<long long> seen{0};
cudaStream_t streams[streams_count];
cudaEvent_t events[events_count];
int *host[buffers_count];
int *up[streams_count][buffers_count];
int *down[buffers_count];
int *scratch[streams_count];

void perform(const Step &step)
{
    const std::string &operation = step.operation;
    int first = step.first, second = step.second;
    if (operation == "launch")
        fill(scratch[first], 1, 1, streams[first]);
    else if (operation == "download")
        DOWNLOAD_ASYNC(host[second], down[second], bytes, streams[first]);
    else if (operation == "upload")
        UPLOAD_ASYNC(up[first][second], host[second], bytes, streams[first]);
    else if (operation == "download_now")
        check(cudaMemcpy(host[first], down[first], bytes, cudaMemcpyDeviceToHost));
    else if (operation == "upload_now")
        check(cudaMemcpy(up[0][first], host[first], bytes, cudaMemcpyHostToDevice));
    else if (operation == "wait_device")
        check(cudaDeviceSynchronize());
    else if (operation == "wait_stream")
        check(cudaStreamSynchronize(streams[first]));
    else if (operation == "wait_event")
        check(cudaEventSynchronize(events[first]));
    else if (operation == "record")
        check(cudaEventRecord(events[first], streams[second]));
    else if (operation == "order")
        check(cudaStreamWaitEvent(streams[first], events[second], 0));
    else if (operation == "read")
        for (int index = 0; index < count; index += stride)
            seen += static_cast<volatile int *>(host[first])[index];
    else if (operation == "write")
        for (int index = 0; index < count; index += stride)
            static_cast<volatile int *>(host[first])[index] = index;
    else if (operation == "elapsed") {
        float milliseconds = 0;
        check(cudaEventElapsedTime(&milliseconds, events[first], events[second]));
    } else
        std::abort();
}

void run_thread(int thread)
{
    for (size_t index = 0; index < steps.size(); ++index) {
        if (steps[index].thread != thread)
            continue;
        while (turn.load(std::memory_order_acquire) != index)
            std::this_thread::yield();
        perform(steps[index]);
        turn.store(index + 1, std::memory_order_release);
    }
}

} // namespace

void program()
{
    std::ifstream file(planted::variant());
    for (std::string line; std::getline(file, line);) {
        std::istringstream words(line);
        Step step = {0, "", 0, 0};
        words >> step.thread >> step.operation >> step.first >> step.second;
        steps.push_back(step);
    }
    check(cudaStreamCreate(&streams[1]));
    streams[2] = independent_stream();
    streams[3] = independent_stream();
    for (cudaEvent_t &event : events)
        check(cudaEventCreate(&event));
    for (int buffer = 0; buffer < buffers_count; ++buffer) {
        host[buffer] = pinned_integers(count);
        down[buffer] = device_integers(count);
        for (auto &of_stream : up)
            of_stream[buffer] = device_integers(count);
    }
    for (int *&memory : scratch)
        memory = device_integers(1);
    std::vector<std::thread> threads;
    for (int thread = 1; thread < threads_count; ++thread)
        threads.emplace_back(run_thread, thread);
    run_thread(0);
    for (std::thread &thread : threads)
        thread.join();
    expect("steps", turn.load(), steps.size());
}
