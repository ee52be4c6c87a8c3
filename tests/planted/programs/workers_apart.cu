// Threads with streams and memory of their own wait after every step for what they read only at the end. They count
// their steps under one lock, so that each comes after the others' waits; or one thread drives both streams; or all add
// to what they read in the same memory.
// variants: two, four, alone, common
#include "planted.h"

#include <mutex>
#include <thread>
#include <vector>

constexpr int count = 4096, most = 4, steps = 3;
constexpr size_t bytes = count * sizeof(int);

struct Worker {
    int number;
    int *memory, *input, *host;
    cudaStream_t stream;
};

static std::mutex counting;
static int counted = 0;

static void step(const Worker &worker, int number)
{
    fill(worker.memory, count, number + worker.number, worker.stream);
    // sync: two, four, alone unnecessary, common required (undecidable)
    WAIT(of_step, cudaStreamSynchronize(worker.stream));
    const std::lock_guard<std::mutex> lock(counting);
    ++counted;
}

static void finish(const Worker &worker)
{
    if (variant("common"))
        add_slowly(worker.memory, worker.input, count, worker.stream);
    DOWNLOAD_ASYNC(worker.host, worker.memory, bytes - worker.number * sizeof(int), worker.stream); // none are equal
    WAIT(of_end, cudaStreamSynchronize(worker.stream));                                             // sync: required
}

static void work(const Worker &worker)
{
    for (int number = 0; number < steps; ++number)
        step(worker, number);
    finish(worker);
}

void program()
{
    const int workers = variant("four") ? most : 2;
    std::vector<Worker> all;
    int *input = device_integers(count);
    for (int number = 0; number < workers; ++number)
        all.push_back({number, device_integers(count), input, pinned_integers(count), independent_stream()});
    if (variant("common")) {
        fill(input, count, 10, all[0].stream);
        // sync: common required (undecidable), two, four, alone absent
        WAIT(of_input, cudaStreamSynchronize(all[0].stream));
    }
    if (variant("alone")) {
        for (int number = 0; number < steps; ++number)
            for (const Worker &worker : all)
                step(worker, number);
        for (const Worker &worker : all)
            finish(worker);
    } else {
        std::vector<std::thread> threads;
        for (const Worker &worker : all)
            threads.emplace_back(work, std::cref(worker));
        for (std::thread &thread : threads)
            thread.join();
    }
    for (const Worker &worker : all)
        expect("last", sum(worker.host, count),
               (variant("common") ? 11 : steps - 1 + worker.number) * (count - worker.number));
    expect("steps", counted, workers * steps);
}
