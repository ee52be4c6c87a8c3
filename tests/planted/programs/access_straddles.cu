// One load of eight bytes begins before what came and ends inside it; or it ends before.
// variants: into, before
#include "planted.h"

constexpr int count = 64;

__attribute__((noinline)) long long load(const int *at)
{
    long long value;
    std::memcpy(&value, at, sizeof value);
    return value;
}

void program()
{
    int *device = device_integers(count);
    int *page = pinned_integers(1024, 1);
    int *host = page + 101;
    fill(device, count, 7);
    DOWNLOAD_ASYNC(host, device, count * sizeof(int));
    WAIT(last, cudaStreamSynchronize(nullptr)); // sync: into required, before unnecessary
    expect("high half", load(variant("into") ? host - 1 : host - 2) >> 32, variant("into") ? 7 : 1);
}
