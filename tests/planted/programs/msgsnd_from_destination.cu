// msgsnd(2) and msgrcv(2) take a message of three pages: what three downloads bring, or other memory.
// variants: destination, other
#include "planted.h"

#include <sys/ipc.h>
#include <sys/msg.h>

constexpr int page = 4096 / sizeof(int);
constexpr int type = sizeof(long) / sizeof(int); // which the message begins with
constexpr int count = 2 * page + type;
constexpr size_t bytes = count * sizeof(int);
constexpr size_t text = bytes - sizeof(long);

void program()
{
    int *device = device_integers(count);
    int *host = pinned_integers(count);
    int *other = pageable_integers(count, 3);
    int received[count];
    int queue = msgget(IPC_PRIVATE, 0600);
    if (queue < 0)
        std::abort();
    fill(device, count, 7);
    DOWNLOAD_ASYNC(host, device, page * sizeof(int)); // transfer: needed (first)
    // transfer: copy (of first)
    DOWNLOAD_ASYNC(host + page, device + page, page * sizeof(int));
    DOWNLOAD_ASYNC(host + 2 * page, device + 2 * page, type * sizeof(int));
    WAIT(last, cudaStreamSynchronize(nullptr)); // sync: destination required, other unnecessary
    expect("sent", msgsnd(queue, variant("destination") ? host : other, text, IPC_NOWAIT), 0);
    expect("received", msgrcv(queue, received, text, 0, IPC_NOWAIT), text);
    msgctl(queue, IPC_RMID, nullptr);
    expect("sum", sum(received, count), (variant("destination") ? 7 : 3) * count);
}
