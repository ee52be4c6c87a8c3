// The program gives up the pages on which a download has arrived, and counts on zeros there; or it gives up others.
// variants: given_up, given_up_locked, given_up_guarded, others
#include "planted.h"

// The C library's headers may lack them.
constexpr int dontneed_locked = 24, guard_install = 102, guard_remove = 103;

constexpr int count = 1024;
constexpr size_t bytes = count * sizeof(int);

void program()
{
    int *device = device_integers(count);
    void *memory = mmap(nullptr, 2 * bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    int *host = static_cast<int *>(memory);
    host[0] = host[count] = 1;
    fill(device, count, 7);
    // sync: given_up, given_up_locked, given_up_guarded required, others unnecessary
    DOWNLOAD(copy, host, device, bytes);
    bool done = variant("given_up_locked") && madvise(host, bytes, dontneed_locked) == 0;
    if (variant("given_up_guarded"))
        done = madvise(host, bytes, guard_install) == 0 && madvise(host, bytes, guard_remove) == 0;
    if (!done) // in a kernel that lacks it
        expect("advised", madvise(variant("others") ? host + count : host, bytes, MADV_DONTNEED), 0);
    settle();
    if (!variant("others"))
        expect("sum", sum(host, count), 0);
}
