// recv(2) overwrites the source of an upload in flight, or other memory.
// variants: source, other
// like: read_into_source
#include "planted.h"

#include <sys/socket.h>

constexpr int count = 512;
constexpr size_t bytes = count * sizeof(int);

void program()
{
    int *busy = device_integers(1);
    int *device = device_integers(count);
    int *source = pinned_integers(count, 5);
    int *other = pageable_integers(count, 9);
    int *result = pageable_integers(count);
    int ends[2];
    if (socketpair(AF_UNIX, SOCK_STREAM, 0, ends) != 0)
        std::abort();
    expect("sent", send(ends[0], other, bytes, 0), bytes);
    fill(busy, 1, 0);
    UPLOAD_ASYNC(device, source, bytes);
    WAIT(before, cudaStreamSynchronize(nullptr)); // sync: source required, other unnecessary
    expect("received", recv(ends[1], variant("source") ? source : other, bytes, MSG_WAITALL), bytes);
    add_slowly(device, device, count);
    DOWNLOAD(copy, result, device, bytes); // sync: required
    expect("sum", sum(result, count), 6 * count);
}
