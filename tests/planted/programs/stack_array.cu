// A download into a large array on the stack, read in another function; and one that nobody reads, which cannot be
// seen.
// variants: read, never
// like: stack_destination
#include "planted.h"

constexpr int count = 4096;

__attribute__((noinline)) long long last_of(const int *integers)
{
    return integers[count - 1];
}

void program()
{
    int *device = device_integers(count);
    int host[count];
    fill(device, count, 7);
    DOWNLOAD(copy, host, device, sizeof host); // sync: read required, never required (undecidable)
    if (variant("read"))
        expect("last", last_of(host), 7);
}
