// pwrite(2) of a part of what a download brings, or of the bytes directly after it.
// variants: inside, behind
// like: write_from_destination
#include "planted.h"

constexpr int count = 2000;
constexpr int part = 16;

void program()
{
    int *device = device_integers(count);
    int *host = pinned_integers(count + part, 3);
    int written[part];
    int file = memfd_create("written", 0);
    fill(device, count, 7);
    DOWNLOAD_ASYNC(host, device, count * sizeof(int));
    WAIT(last, cudaStreamSynchronize(nullptr)); // sync: inside required, behind unnecessary
    const int *from = variant("inside") ? host + count - part : host + count;
    expect("bytes", pwrite(file, from, sizeof written, 0), sizeof written);
    expect("read", pread(file, written, sizeof written, 0), sizeof written);
    expect("sum", sum(written, part), (variant("inside") ? 7 : 3) * part);
}
