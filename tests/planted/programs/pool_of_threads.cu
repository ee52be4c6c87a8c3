// Two workers take jobs in turn from a queue behind a lock, so that each has as many of them in every run. A job
// computes on a stream of its own, downloads, waits and looks at its own result; or at none; or the caller looks at all
// results after a count of what is done, behind the lock. Where nobody looks, a wait orders nothing: each job has a
// stream and memory of its own.
// variants: itself, nobody, caller
#include "planted.h"

#include <condition_variable>
#include <deque>
#include <functional>
#include <mutex>
#include <thread>

constexpr int count = 1024, jobs = 6;
constexpr size_t bytes = count * sizeof(int);

static std::mutex lock;
static std::condition_variable changed;
static std::deque<int> queue;
static int over = 0;

void program()
{
    cudaStream_t streams[jobs];
    int *devices[jobs], *hosts[jobs];
    for (int job = 0; job < jobs; ++job) {
        streams[job] = independent_stream();
        devices[job] = device_integers(count);
        hosts[job] = pinned_integers(count);
    }
    auto work = [&](int number) {
        for (;;) {
            std::unique_lock<std::mutex> held(lock);
            changed.wait(held, [&] { return !queue.empty() && (queue.front() < 0 || queue.front() % 2 == number); });
            const int job = queue.front();
            queue.pop_front();
            changed.notify_all();
            held.unlock();
            if (job < 0)
                return;
            fill(devices[job], count, job + 1, streams[job]);
            DOWNLOAD_ASYNC(hosts[job], devices[job], bytes, streams[job]);
            // sync: itself, caller required, nobody unnecessary
            WAIT(ready, cudaStreamSynchronize(streams[job]));
            if (variant("itself"))
                expect("sum", sum(hosts[job], count), (job + 1) * count);
            held.lock();
            ++over;
            changed.notify_all();
        }
    };
    std::thread one(work, 0), other(work, 1);
    {
        std::lock_guard<std::mutex> held(lock);
        for (int job = 0; job < jobs; ++job)
            queue.push_back(job);
        queue.push_back(-1);
        queue.push_back(-1);
        changed.notify_all();
    }
    {
        std::unique_lock<std::mutex> held(lock);
        changed.wait(held, [] { return over == jobs; });
    }
    if (variant("caller"))
        for (int job = 0; job < jobs; ++job)
            expect("sum", sum(hosts[job], count), (job + 1) * count);
    one.join();
    other.join();
}
