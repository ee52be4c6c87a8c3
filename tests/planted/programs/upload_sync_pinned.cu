// A synchronous upload from pinned memory waits; the CPU needs that only when it writes the source again.
// variants: overwritten, kept
#include "planted.h"

constexpr int count = 1024;
constexpr size_t bytes = count * sizeof(int);

void program()
{
    int *busy = device_integers(1);
    int *device = device_integers(count);
    int *source = pinned_integers(count, 5);
    int *result = pageable_integers(count);
    fill(busy, 1, 0);
    UPLOAD(upload, device, source, bytes); // sync: overwritten required, kept unnecessary
    if (variant("overwritten"))
        for (int index = 0; index < count; ++index)
            source[index] = 100;
    add_slowly(device, device, count);
    DOWNLOAD(copy, result, device, bytes); // sync: required
    expect("sum", sum(result, count), 6 * count);
}
