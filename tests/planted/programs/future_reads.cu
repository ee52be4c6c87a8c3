// A result is used by a task of the C++ library: one that runs at once on a thread of its own, one that runs only when
// somebody asks for it, or one that gets it by a promise. Or the task does not look at it. A second wait before the
// task is asked covers nothing that the first one did not.
// variants: async, deferred, promise, packaged, unused
#include "planted.h"

#include <future>

constexpr int count = 4096;
constexpr size_t bytes = count * sizeof(int);

void program()
{
    int *device = device_integers(count), *host = pinned_integers(count), *other = pinned_integers(count, 1);
    const int *place = variant("unused") ? other : host;
    const auto look = [place] { return sum(place, count); };
    fill(device, count, 7);
    DOWNLOAD_ASYNC(host, device, bytes);
    // sync: async, promise, packaged required, deferred conditionally unnecessary, unused unnecessary
    WAIT(first, cudaStreamSynchronize(nullptr));
    std::future<long long> result;
    std::thread thread;
    if (variant("async") || variant("unused"))
        result = std::async(std::launch::async, look);
    if (variant("deferred"))
        result = std::async(std::launch::deferred, look);
    if (variant("packaged")) {
        std::packaged_task<long long()> task(look);
        result = task.get_future();
        thread = std::thread(std::move(task));
    }
    if (variant("promise")) {
        std::promise<long long> promise;
        result = promise.get_future();
        thread = std::thread([look, promise = std::move(promise)]() mutable { promise.set_value(look()); });
    }
    // sync: deferred required, async, promise, packaged, unused unnecessary or conditionally unnecessary
    WAIT(second, cudaStreamSynchronize(nullptr));
    expect("sum", result.get(), variant("unused") ? count : 7LL * count);
    if (thread.joinable())
        thread.join();
}
