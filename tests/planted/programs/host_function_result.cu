// A host function of the stream computes something from the download, which the CPU reads after the wait; or there is
// no host function, and nothing to read.
// variants: function, none
#include "planted.h"

constexpr int count = 1024;
constexpr size_t bytes = count * sizeof(int);

struct Work {
    const int *host;
    long long total;
};

void add_up(void *data)
{
    Work *work = static_cast<Work *>(data);
    work->total = sum(work->host, count);
}

void program()
{
    int *device = device_integers(count);
    static Work work = {pinned_integers(count), 0};
    fill(device, count, 7);
    DOWNLOAD_ASYNC(const_cast<int *>(work.host), device, bytes);
    if (variant("function"))
        check(cudaLaunchHostFunc(nullptr, add_up, &work));
    WAIT(last, cudaStreamSynchronize(nullptr)); // sync: function required, none unnecessary
    expect("total", work.total, variant("function") ? 7 * count : 0);
}
