// pread(2) fills the memory in which a download arrives: without the wait the download destroys it. Or other memory.
// variants: destination, other
#include "planted.h"

constexpr int count = 1024;
constexpr size_t bytes = count * sizeof(int);

void program()
{
    int *device = device_integers(count);
    int *host = pinned_integers(count);
    int *other = pageable_integers(count, 9);
    int file = memfd_create("file", 0);
    expect("written", pwrite(file, other, bytes, 0), bytes);
    fill(device, count, 7);
    DOWNLOAD_ASYNC(host, device, bytes);
    WAIT(last, cudaStreamSynchronize(nullptr)); // sync: destination required, other unnecessary
    int *filled = variant("destination") ? host : other;
    expect("bytes", pread(file, filled, bytes, 0), bytes);
    settle();
    expect("sum", sum(filled, count), 9 * count);
}
