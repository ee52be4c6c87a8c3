// A download, whose destination shares a page with memory of the C library that a kernel writes later. The page is open
// when the kernel comes, and what was downloaded counts as used.
// variants: never, read
#include "planted.h"

constexpr int count = 64;

void program()
{
    int *page = nullptr;
    int *device = device_integers(count);
    void *memory = nullptr;
    if (posix_memalign(&memory, 4096, 4096) != 0)
        std::abort();
    page = static_cast<int *>(memory);
    std::memset(page, 0, 4096);
    int *destination = page, *written = page + 2 * count;
    fill(device, count, 5);
    DOWNLOAD(copy, destination, device, count * sizeof(int)); // sync: required (undecidable)
    fill(written, count, 7);
    WAIT(last, cudaDeviceSynchronize()); // sync: required
    expect("written", sum(written, count), 7 * count);
    if (variant("read"))
        expect("downloaded", sum(destination, count), 5 * count);
}
