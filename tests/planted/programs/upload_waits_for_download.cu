// The wait inside an upload from pageable memory is what makes an earlier download arrive before the CPU reads it.
// variants: read, never
#include "planted.h"

constexpr int count = 1024;
constexpr size_t bytes = count * sizeof(int);

void program()
{
    int *device = device_integers(count);
    int *other = device_integers(count);
    int *host = pinned_integers(count);
    int *source = pageable_integers(count, 5);
    fill(device, count, 7);
    DOWNLOAD_ASYNC(host, device, bytes);
    UPLOAD(upload, other, source, bytes); // sync: read required, never unnecessary
    if (variant("read"))
        expect("sum", sum(host, count), 7 * count);
}
