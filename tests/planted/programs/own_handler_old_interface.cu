// The program asks signal() for its handler of SIGSEGV, gets what stood there before, and puts that back.
// variants: read, never
#include "planted.h"

#include <csignal>

constexpr int count = 1024;
constexpr size_t bytes = count * sizeof(int);

void on_fault(int)
{
    _exit(3);
}

void program()
{
    int *device = device_integers(count);
    int *host = pinned_integers(count);
    fill(device, count, 7);
    DOWNLOAD_ASYNC(host, device, bytes);
    WAIT(last, cudaStreamSynchronize(nullptr)); // sync: read required, never unnecessary
    expect("none before", std::signal(SIGSEGV, on_fault) == SIG_DFL, 1);
    if (variant("read"))
        expect("sum", sum(host, count), 7 * count);
    expect("put back", std::signal(SIGSEGV, SIG_DFL) == on_fault, 1);
}
