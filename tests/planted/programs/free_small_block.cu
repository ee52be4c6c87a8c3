// A small result in a heap block is read or not; the block is freed, and another one of the same size is used in its
// place. Removing the wait alone would let the copy write into that one, but nobody looks at the result.
// variants: read, never
#include "planted.h"

constexpr int count = 640; // 2.5 KiB
constexpr size_t bytes = count * sizeof(int);

void program()
{
    int *device = device_integers(count);
    for (int round = 0; round < 2; ++round) {
        int *host = pageable_integers(count);
        fill(device, count, 7);
        DOWNLOAD(copy, host, device, bytes); // sync: required; transfer: needed
        if (variant("read"))
            expect("sum", sum(host, count), 7 * count);
        std::free(host);
        int *other = pageable_integers(count, 3);
        settle();
        expect("other", sum(other, count), 3 * count);
        std::free(other);
    }
}
