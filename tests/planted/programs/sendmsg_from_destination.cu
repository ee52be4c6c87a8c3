// sendmsg(2) and recvmsg(2) name their memory in a message header: what a download brings, or other memory.
// variants: destination, other
// like: calls_with_structures
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
    iovec out = {variant("destination") ? host : other, bytes};
    msghdr message = {};
    message.msg_iov = &out;
    message.msg_iovlen = 1;
    expect("sent", sendmsg(ends[0], &message, 0), bytes);
    iovec in = {received, bytes};
    message.msg_iov = &in;
    expect("received", recvmsg(ends[1], &message, MSG_WAITALL), bytes);
    expect("sum", sum(received, count), (variant("destination") ? 7 : 3) * count);
}
