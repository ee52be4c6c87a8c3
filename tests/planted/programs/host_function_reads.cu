// A host function reads the download in stream order: it does not rely on a wait before it is enqueued. The CPU
// reading at the same place does rely on it.
// variants: function, direct
#include "planted.h"

#include <atomic>
#include <thread>

constexpr int count = 1024;
constexpr size_t bytes = count * sizeof(int);

struct Work {
    const int *host;
    std::atomic<long long> total;
};

void add_up(void *data)
{
    Work *work = static_cast<Work *>(data);
    work->total.store(sum(work->host, count));
}

void program()
{
    int *device = device_integers(count);
    static Work work = {pinned_integers(count), {0}};
    fill(device, count, 7);
    DOWNLOAD_ASYNC(const_cast<int *>(work.host), device, bytes);
    // sync: function unnecessary or conditionally unnecessary, direct required
    WAIT(before, cudaStreamSynchronize(nullptr));
    if (variant("function"))
        check(cudaLaunchHostFunc(nullptr, add_up, &work));
    else
        add_up(&work);
    while (work.total.load() == 0 && variant("function"))
        std::this_thread::yield();
    expect("total", work.total.load(), 7 * count);
}
