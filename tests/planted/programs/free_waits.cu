// The wait inside cudaFree is what makes a download arrive before the CPU reads it; or nobody reads.
// variants: read, never
#include "planted.h"

constexpr int count = 1024;
constexpr size_t bytes = count * sizeof(int);

void program()
{
    int *device = device_integers(count);
    int *unrelated = device_integers(count);
    int *host = pinned_integers(count);
    fill(device, count, 7);
    DOWNLOAD_ASYNC(host, device, bytes);
    FREE(free, unrelated); // sync: read required, never unnecessary
    if (variant("read"))
        expect("sum", sum(host, count), 7 * count);
}
