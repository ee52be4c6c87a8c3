// The program has a handler of its own for SIGSEGV, installed after the driver was loaded, for faults of its own.
// variants: read, never
#include "planted.h"

#include <csignal>

constexpr int count = 1024;
constexpr size_t bytes = count * sizeof(int);

char *closed;
int faults = 0;

void on_fault(int, siginfo_t *info, void *)
{
    char *page = reinterpret_cast<char *>(reinterpret_cast<uintptr_t>(info->si_addr) / 4096 * 4096);
    if (page != closed)
        _exit(3);
    ++faults;
    mprotect(closed, 4096, PROT_READ | PROT_WRITE);
}

void program()
{
    int *device = device_integers(count);
    int *host = pinned_integers(count);
    closed = static_cast<char *>(mmap(nullptr, 4096, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
    struct sigaction action = {};
    action.sa_sigaction = on_fault;
    action.sa_flags = SA_SIGINFO;
    sigaction(SIGSEGV, &action, nullptr);
    fill(device, count, 7);
    DOWNLOAD_ASYNC(host, device, bytes);
    // sync: read required, never required (undecidable) or unnecessary
    WAIT(last, cudaStreamSynchronize(nullptr));
    closed[10] = 1;
    if (variant("read"))
        expect("sum", sum(host, count), 7 * count);
    expect("faults", faults, 1);
}
