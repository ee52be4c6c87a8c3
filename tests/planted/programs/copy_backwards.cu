// A string instruction copies the result from its end on, with the direction flag set; or it copies what is below.
// variants: result, below
#include "planted.h"

constexpr int count = 16384;
constexpr size_t bytes = count * sizeof(int);

static void copy_backwards(char *to_last, const char *from_last, size_t many)
{
    __asm__ volatile("std; rep movsb; cld" : "+D"(to_last), "+S"(from_last), "+c"(many) : : "memory");
}

void program()
{
    int *device = device_integers(count);
    int *both = pinned_integers(2 * count, 7);
    int *host = both + count, *copy = pageable_integers(count);
    fill(device, count, 7);
    for (int index = 0; index < count; ++index)
        host[index] = 0;
    DOWNLOAD_ASYNC(host, device, bytes);
    WAIT(last, cudaStreamSynchronize(nullptr)); // sync: result required, below unnecessary
    const int *from = variant("result") ? host : both;
    copy_backwards(reinterpret_cast<char *>(copy) + bytes - 1, reinterpret_cast<const char *>(from) + bytes - 1, bytes);
    expect("sum", sum(copy, count), 7LL * count);
}
