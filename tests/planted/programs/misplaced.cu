// The CPU works for a long time between the wait and the first use of the download: the wait belongs after the work. Or
// the use comes at once and the work after it.
// variants: work_first, use_first
#include "planted.h"

constexpr int count = 1024;
constexpr size_t bytes = count * sizeof(int);

void work()
{
    if (planted::complete())
        for (volatile long turn = 0; turn < 5'000'000;)
            turn = turn + 1;
}

void program()
{
    int *device = device_integers(count);
    int *host = pinned_integers(count);
    fill(device, count, 7);
    DOWNLOAD_ASYNC(host, device, bytes);
    WAIT(last, cudaStreamSynchronize(nullptr)); // sync: work_first misplaced, use_first required
    if (variant("work_first"))
        work();
    expect("sum", sum(host, count), 7 * count);
    if (variant("use_first"))
        work();
}
