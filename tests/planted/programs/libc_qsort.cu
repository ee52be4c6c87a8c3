// qsort reads and writes the download, or other memory.
// variants: host, other
// like: libc_memcpy
#include "planted.h"

constexpr int count = 512;

int by_value(const void *left, const void *right)
{
    return *static_cast<const int *>(left) - *static_cast<const int *>(right);
}

void program()
{
    int *device = device_integers(count);
    int *host = pinned_integers(count);
    int *other = pageable_integers(count, 3);
    fill(device, count / 2, 7);
    DOWNLOAD_ASYNC(host, device, count / 2 * sizeof(int));
    WAIT(last, cudaStreamSynchronize(nullptr)); // sync: host required, other unnecessary
    int *sorted = variant("host") ? host : other;
    std::qsort(sorted, count, sizeof(int), by_value);
    expect("last", sorted[count - 1], variant("host") ? 7 : 3);
}
