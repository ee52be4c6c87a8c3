// The program gives up the pages on which a download has arrived, and counts on zeros there; or it gives up others.
// variants: given_up, others
#include "planted.h"

constexpr int count = 1024;
constexpr size_t bytes = count * sizeof(int);

void program()
{
    int *device = device_integers(count);
    void *memory = mmap(nullptr, 2 * bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    int *host = static_cast<int *>(memory);
    host[0] = host[count] = 1;
    fill(device, count, 7);
    DOWNLOAD(copy, host, device, bytes); // sync: given_up required, others unnecessary
    expect("advised", madvise(variant("given_up") ? host : host + count, bytes, MADV_DONTNEED), 0);
    settle();
    if (variant("given_up"))
        expect("sum", sum(host, count), 0);
}
