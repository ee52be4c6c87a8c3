// One load of eight bytes begins on the page before what came; or it lies on that page.
// variants: into, before
// like: access_straddles
#include "planted.h"

constexpr int count = 64;

__attribute__((noinline)) long long load(const char *at)
{
    long long value;
    std::memcpy(&value, at, sizeof value);
    return value;
}

void program()
{
    int *device = device_integers(count);
    char *pages = reinterpret_cast<char *>(pinned_integers(2048, 0x01010101));
    fill(device, count, 0x07070707);
    DOWNLOAD_ASYNC(pages + 4096, device, count * sizeof(int));
    WAIT(last, cudaStreamSynchronize(nullptr)); // sync: into required, before unnecessary
    expect("last byte", load(pages + 4096 - (variant("into") ? 3 : 8)) >> 56, variant("into") ? 7 : 1);
}
