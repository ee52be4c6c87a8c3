// The older cudaStreamAddCallback: its function computes something that the CPU reads after the wait; or there is none.
// variants: callback, none
#include "planted.h"

constexpr int count = 1024;
constexpr size_t bytes = count * sizeof(int);

struct Work {
    const int *host;
    long long total;
};

void CUDART_CB add_up(cudaStream_t, cudaError_t, void *data)
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
    if (variant("callback"))
        check(cudaStreamAddCallback(nullptr, add_up, &work, 0));
    WAIT(last, cudaStreamSynchronize(nullptr)); // sync: callback required, none unnecessary
    expect("total", work.total, variant("callback") ? 7 * count : 0);
}
