// send(2) over a socket reads what a download brings, or other memory.
// variants: destination, other
// like: write_from_destination
#include "planted.h"

#include <sys/socket.h>

constexpr int count = 512;
constexpr size_t bytes = count * sizeof(int);

void program()
{
    int *device = device_integers(count);
    int *host = pinned_integers(count);
    int *other = pageable_integers(count, 3);
    int received[count];
    int ends[2];
    if (socketpair(AF_UNIX, SOCK_STREAM, 0, ends) != 0)
        std::abort();
    fill(device, count, 7);
    DOWNLOAD_ASYNC(host, device, bytes);
    WAIT(last, cudaStreamSynchronize(nullptr)); // sync: destination required, other unnecessary
    expect("sent", send(ends[0], variant("destination") ? host : other, bytes, 0), bytes);
    expect("received", recv(ends[1], received, bytes, MSG_WAITALL), bytes);
    expect("sum", sum(received, count), (variant("destination") ? 7 : 3) * count);
}
