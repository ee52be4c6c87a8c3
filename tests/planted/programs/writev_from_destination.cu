// writev(2) gathers from several places, of which a download's destination is one or none.
// variants: destination, other
// like: calls_with_structures
#include "planted.h"

#include <sys/uio.h>

constexpr int count = 512;
constexpr size_t bytes = count * sizeof(int);

void program()
{
    int *device = device_integers(count);
    int *host = pinned_integers(count);
    int *other = pageable_integers(2 * count, 3);
    int written[2 * count];
    int file = memfd_create("written", 0);
    fill(device, count, 7);
    DOWNLOAD_ASYNC(host, device, bytes);
    WAIT(last, cudaStreamSynchronize(nullptr)); // sync: destination required, other unnecessary
    iovec pieces[2] = {{other, bytes}, {variant("destination") ? host : other + count, bytes}};
    expect("bytes", writev(file, pieces, 2), 2 * bytes);
    expect("read", pread(file, written, sizeof written, 0), sizeof written);
    expect("sum", sum(written, 2 * count), (variant("destination") ? 10 : 6) * count);
}
