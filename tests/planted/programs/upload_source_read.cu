// The CPU only reads the source of an asynchronous upload: reading endangers nothing.
// variants: read, written
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
    UPLOAD_ASYNC(device, source, bytes);
    WAIT(before, cudaStreamSynchronize(nullptr)); // sync: read unnecessary, written required
    expect("source", sum(source, count), 5 * count);
    if (variant("written"))
        source[count - 1] = 100;
    add_slowly(device, device, count);
    DOWNLOAD(copy, result, device, bytes); // sync: required
    expect("sum", sum(result, count), 6 * count);
}
