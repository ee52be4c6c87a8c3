// The pages in which a download arrived move to another address, where they are read; or they stay and nobody reads.
// variants: moved, kept
#include "planted.h"

constexpr int count = 1024;
constexpr size_t bytes = count * sizeof(int);

void *map()
{
    return mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
}

void program()
{
    int *device = device_integers(count);
    void *host = map();
    void *place = map();
    static_cast<int *>(host)[0] = 0;
    fill(device, count, 7);
    DOWNLOAD(copy, host, device, bytes); // sync: moved required, kept unnecessary
    if (variant("moved")) {
        int *moved = static_cast<int *>(mremap(host, bytes, bytes, MREMAP_MAYMOVE | MREMAP_FIXED, place));
        expect("sum", sum(moved, count), 7 * count);
    }
}
