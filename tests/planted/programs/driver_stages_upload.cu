// An upload from pageable memory stages what a download brought: the driver reads it on the CPU, at once. Or it sends
// other memory.
// variants: downloaded, other
#include "planted.h"

constexpr int count = 1024;
constexpr size_t bytes = count * sizeof(int);

void program()
{
    int *made = device_integers(count);
    int *used = device_integers(count);
    int *between = pageable_integers(count);
    int *other = pageable_integers(count, 3);
    int *host = pinned_integers(count);
    fill(made, count, 7);
    DOWNLOAD(down, between, made, bytes); // sync: downloaded required, other unnecessary
    const int *source = variant("downloaded") ? between : other;
    UPLOAD_ASYNC(used, source, bytes); // transfer: downloaded copy, other needed
    add_slowly(used, used, count);
    DOWNLOAD_ASYNC(host, used, bytes);
    WAIT(last, cudaStreamSynchronize(nullptr)); // sync: required
    expect("sum", sum(host, count), (variant("downloaded") ? 8 : 4) * count);
}
