// The program handles SIGTRAP for breakpoints of its own, while a page that is watched is in use.
// variants: inside, beside
#include "planted.h"

#include <csignal>

constexpr int count = 16;

volatile int traps = 0;

void on_trap(int)
{
    traps = traps + 1;
}

void program()
{
    int *device = device_integers(count);
    int *page = pinned_integers(1024, 1);
    std::signal(SIGTRAP, on_trap);
    fill(device, count, 7);
    DOWNLOAD_ASYNC(page, device, count * sizeof(int));
    // sync: inside required, beside required (undecidable) or unnecessary
    WAIT(last, cudaStreamSynchronize(nullptr));
    expect("beside", sum(page + 512, 512), 512);
    std::raise(SIGTRAP);
    expect("traps", traps, 1);
    if (variant("inside"))
        expect("inside", sum(page, count), 7 * count);
}
