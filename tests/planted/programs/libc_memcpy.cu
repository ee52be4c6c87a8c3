// memcpy reads the download, or other memory.
// variants: host, other
#include "planted.h"

constexpr int count = 4096;
constexpr size_t bytes = count * sizeof(int);

void program()
{
    int *device = device_integers(count);
    int *host = pinned_integers(count);
    int *other = pageable_integers(count, 3);
    int *copied = pageable_integers(count);
    fill(device, count, 7);
    DOWNLOAD_ASYNC(host, device, bytes);
    WAIT(last, cudaStreamSynchronize(nullptr)); // sync: host required, other unnecessary
    std::memcpy(copied, variant("host") ? host : other, bytes);
    expect("sum", sum(copied, count), (variant("host") ? 7 : 3) * count);
}
