// A synchronous download into the heap that nobody reads, and whose memory is freed, or kept.
// variants: freed, kept
#include "planted.h"

constexpr int count = 1024;
constexpr size_t bytes = count * sizeof(int);

void program()
{
    int *device = device_integers(count);
    int *host = pageable_integers(count);
    fill(device, count, 7);
    DOWNLOAD(copy, host, device, bytes); // sync: freed required, kept unnecessary
    if (variant("freed"))
        std::free(host);
    int *next = pageable_integers(count, 1);
    settle();
    expect("sum", sum(next, count), count);
}
