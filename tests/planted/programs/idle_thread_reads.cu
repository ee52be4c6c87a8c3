// The first thread calls no CUDA function at all: a second one downloads for it, to the heap, to the first one's stack,
// or far down on that, after three mebibytes of another variable. The first one reads, or does not.
// variants: heap, near, deep, never
#include "planted.h"

#include <thread>

constexpr int count = 16; // on one page with what the thread runs on
constexpr size_t bytes = count * sizeof(int);

static void download_elsewhere(int *host)
{
    std::thread second([host] {
        int *device = device_integers(count);
        fill(device, count, 7);
        DOWNLOAD(copy, host, device, bytes); // sync: heap, near, deep required, never unnecessary
    });
    second.join();
    if (!variant("never"))
        expect("sum", sum(host, count), 7 * count);
}

__attribute__((noinline)) static void download_deep()
{
    int on_stack[count] = {};
    download_elsewhere(on_stack);
}

__attribute__((noinline)) static void with_large_variable()
{
    volatile char large[3 << 20];
    for (size_t place = 0; place < sizeof large; place += 4096)
        large[place] = 1;
    download_deep();
    expect("large", large[0], 1);
}

void program()
{
    if (variant("deep"))
        with_large_variable();
    else if (variant("near"))
        download_deep();
    else
        download_elsewhere(static_cast<int *>(std::calloc(4 * count, sizeof(int))) + count);
}
