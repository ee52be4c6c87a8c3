// readv(2) scatters into several places, of which the source of an upload in flight is one or none.
// variants: source, other
// like: read_into_source
#include "planted.h"

#include <sys/uio.h>

constexpr int count = 512;
constexpr size_t bytes = count * sizeof(int);

void program()
{
    int *busy = device_integers(1);
    int *device = device_integers(count);
    int *source = pinned_integers(count, 5);
    int *other = pageable_integers(2 * count, 9);
    int *result = pageable_integers(count);
    int file = memfd_create("file", 0);
    expect("written", pwrite(file, other, 2 * bytes, 0), 2 * bytes);
    fill(busy, 1, 0);
    UPLOAD_ASYNC(device, source, bytes);
    WAIT(before, cudaStreamSynchronize(nullptr)); // sync: source required, other unnecessary
    iovec pieces[2] = {{other, bytes}, {variant("source") ? source : other + count, bytes}};
    expect("bytes", preadv(file, pieces, 2, 0), 2 * bytes);
    add_slowly(device, device, count);
    DOWNLOAD(copy, result, device, bytes); // sync: required
    expect("sum", sum(result, count), 6 * count);
}
